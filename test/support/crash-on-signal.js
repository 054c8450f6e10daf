// Tests load this before `untag`. SIGUSR2 then throws an error that no part of the program catches.
process.once('SIGUSR2', () => {
  throw new Error('planted crash')
})
