import { openAuthorization } from '../../policy/documents/authorization.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes } from './figure.ts'
import { cpuTime, takeTurns } from './measure.ts'
import { bareVerify, signedBytes } from './peers/bare-verify.ts'
import { joseVerify } from './peers/jose-verify.ts'
import { tokenSource } from './tokens.ts'

const BARE = 'bare Ed25519 verify'
const OURS = 'openAuthorization'
const JOSE = 'jose jwtVerify (fewer checks)'

/** Maximum ratio of the cost of the strict verification to that of the signature alone. */
const LIMIT = 1.3
/**
 * `warmUps`: unmeasured rounds, in which Node.js compiles the code. Without them the strict verification would seem too
 * slow, because the bare contender has almost no code.
 */
const SIZES = {
  full: { tokens: 500, rounds: 25, warmUps: 3 },
  quick: { tokens: 500, rounds: 9, warmUps: 3 },
  smoke: { tokens: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures how much the strict checks of a token cost in addition to its signature. */
export const verifyToken: Figure = { sizes: SIZES, run }

async function run({ mode, random }: Bench): Promise<Result> {
  const { rounds, warmUps, ...sizes } = SIZES[mode]
  const source = tokenSource(random)
  const { keys, device: audience, now } = source
  const tokens = source.make(sizes.tokens)
  const bytes = tokens.map((token) => signedBytes(token, keys))
  const contenders = [
    {
      name: BARE,
      slice: () =>
        cpuTime(bytes.length, () => {
          for (const signed of bytes) bareVerify(signed)
        }),
    },
    {
      name: OURS,
      slice: () =>
        cpuTime(tokens.length, () => {
          for (const token of tokens) {
            const opened = openAuthorization(token, { keys, audience, now })
            if (!opened.ok) throw new Error(`a valid token was rejected: ${opened.fault}`)
          }
        }),
    },
    {
      name: JOSE,
      slice: () =>
        cpuTime(tokens.length, async () => {
          for (const token of tokens) await joseVerify(token, keys, audience, now)
        }),
    },
  ]
  const samples = await takeTurns(contenders, rounds, random, warmUps)
  return {
    title: '1  Strict verification of an authorization token',
    counts: 'CPU time of the process, all threads',
    rows: rowsOf(samples, BARE),
    targets: [costsAtMost(samples, OURS, BARE, LIMIT)],
    notes: [],
  }
}
