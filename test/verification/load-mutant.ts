import { register } from 'node:module'
import { FUZZ_MUTANTS } from './fuzz/fuzz-mutants.ts'
import { RIGHTS_MUTANTS } from './fuzz/rights/rights-mutants.ts'
import { HISTORY_MUTANTS } from './histories/history-mutants.ts'
import { MUTANTS } from './simulation/mutants/catalogue.ts'
import { KILL_MUTANTS } from './kills/kill-mutants.ts'

/** Applies the mutant that UNTAG_SIM_BUG names. Node loads this file first (`node --import`). */
const mutants = [...MUTANTS, ...FUZZ_MUTANTS, ...RIGHTS_MUTANTS, ...KILL_MUTANTS, ...HISTORY_MUTANTS]
const bug = mutants.find(({ name }) => name === process.env['UNTAG_SIM_BUG'])
if (!bug) throw new Error('UNTAG_SIM_BUG names no mutant of the catalogue')
register(new URL('./simulation/mutants/module-hooks.js', import.meta.url), {
  data: { bug, base: new URL('../../', import.meta.url).href },
})
