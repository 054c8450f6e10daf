import { register } from 'node:module'
import { FUZZ_BUGS } from './fuzz/bugs.ts'
import { BUGS } from './simulation/bugs/bank.ts'
import { KILL_BUGS } from './kills/kill-bugs.ts'

/** Loaded before the simulation, the fuzzer or a process (`node --import`): plants the bug that the environment names. */
const bug = [...BUGS, ...FUZZ_BUGS, ...KILL_BUGS].find(({ name }) => name === process.env['UNTAG_SIM_BUG'])
if (!bug) throw new Error('UNTAG_SIM_BUG names no bug of the bank')
register(new URL('./simulation/bugs/plant.js', import.meta.url), {
  data: { bug, base: new URL('../', import.meta.url).href },
})
