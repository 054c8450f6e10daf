/** True in `.ci/full`. Tests then run in full size. In `.ci/run` they run a sample, because its time is short. */
export const IS_FULL_SIZE = process.env['UNTAG_TEST_FULL'] === 'true'
