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
conversations  message              what a simulated user and an assistant said
invocations    activation           who was active, an agent or a speaker, at what cost
model_calls    captured call        who called which model, what came of it, at what cost
turns          turn of an agent     what stood before the model, and what it answered
gaps           gap                  what the evidence does not say
health       result, finding      whether the evidence of a result is sound
training     policy sample        which tokens the policy wrote, and what they earned
outcomes       result               how a simulation ended, and the verdict on it
audit          check of a user      whether the simulated user kept to its part
============== ==================== ========================================================

``grains`` has those of every run by name and puts them into a folder; ``records`` reads the files, ours and NeMo Gym's;
``column`` turns cells into nullable arrays; ``text`` says how a lone surrogate is kept; ``parquet`` writes a frame and
reads it back.
"""
