"""Collection: tasks in, records out. ``plan`` says what will run, ``collector`` runs it, ``store`` keeps what came."""
