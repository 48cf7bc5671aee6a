"""Everything that needs JAX: the environment, the policies, and learning them.

`train(key, config) -> policy, history` is a pure function; `trainer.train(config, folder)` is the same with files,
checkpoints and progress around it.
"""
