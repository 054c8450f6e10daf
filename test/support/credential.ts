/** The credential of the agents that run in the test process. */
export const CREDENTIAL = `untag_pair_${'x'.repeat(32)}`

/** The authorization header with it. */
export const AUTHORIZATION = { authorization: `Bearer ${CREDENTIAL}` }
