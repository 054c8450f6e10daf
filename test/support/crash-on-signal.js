// Loaded before `untag` by tests: a fault that no part of the program catches, with the stack of an ordinary one.
process.once('SIGUSR2', () => {
  throw new Error('planted crash')
})
