import { register } from 'node:module'
import { FUZZ_MUTANTS } from './fuzz/fuzz-mutants.ts'
import { MUTANTS } from './simulation/mutants/catalogue.ts'
import { KILL_MUTANTS } from './kills/kill-mutants.ts'

/** Loaded before the simulation, the fuzzer or a process (`node --import`): plants the bug that the environment names. */
const bug = [...MUTANTS, ...FUZZ_MUTANTS, ...KILL_MUTANTS].find(({ name }) => name === process.env['UNTAG_SIM_BUG'])
if (!bug) throw new Error('UNTAG_SIM_BUG names no bug of the bank')
register(new URL('./simulation/mutants/module-hooks.js', import.meta.url), {
  data: { bug, base: new URL('../', import.meta.url).href },
})
