"""Records in, DataFrame out: one module per grain, each with its ``COLUMNS`` and a ``frame`` function.

============== ==================== ========================================================
module         one row per          answers
============== ==================== ========================================================
tasks          task                 what was asked
rewards        planned rollout      how it ended, and what it scored
masks          row of the main file whether the reward measures the agent, and why not
trajectories   item                 what was said and done, in order
tool_calls     call of a function   what was asked of the tools, and what came back
failures       failed attempt       what went wrong
============== ==================== ========================================================

``records`` reads the files, ours and NeMo Gym's; ``column`` turns cells into nullable arrays; ``text`` says how a lone
surrogate is kept; ``parquet`` writes a frame and reads it back.
"""
