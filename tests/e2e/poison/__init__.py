"""An installed app that makes the refund of one order, named by the environment, end every worker that takes it."""
