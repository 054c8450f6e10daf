import { it, type TestAPI } from 'vitest'

/** True in `.ci/full`. Tests then run in full size. In `.ci/run` they run a sample, because its time is short. */
export const IS_FULL_SIZE = process.env['UNTAG_TEST_FULL'] === 'true'

/** A test of `.ci/full` only, because `.ci/run` has no time for it: mutants of whole systems, and all benchmarks. */
export const itInFullSize: TestAPI = IS_FULL_SIZE ? it : (it.skip as TestAPI)
