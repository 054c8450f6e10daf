/** The credential of every agent that tests run within their own process. */
export const CREDENTIAL = `untag_pair_${'x'.repeat(32)}`

/** The header of a program that has it. */
export const AUTHORIZATION = { authorization: `Bearer ${CREDENTIAL}` }
