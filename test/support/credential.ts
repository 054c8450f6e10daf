/** The credential of the agents that run in the test process. */
export const CREDENTIAL = `untag_pair_${'x'.repeat(32)}`

/** Authorization header with this credential. */
export const AUTHORIZATION = { authorization: `Bearer ${CREDENTIAL}` }
