import { openAuthorization } from '../policy/documents/authorization.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result } from './figure.ts'
import { cpuTime, takeTurns } from './measure.ts'
import { bareVerify, signedBytes } from './peers/bare-verify.ts'
import { joseVerify } from './peers/jose-verify.ts'
import { tokenSource } from './tokens.ts'

const BARE = 'bare Ed25519 verify'
const OURS = 'openAuthorization'
const JOSE = 'jose jwtVerify (fewer checks)'

/** Most that strict checking may cost over the signature alone. */
const LIMIT = 1.3
/** Rounds until everything is compiled: the bare side has nothing to compile. */
const WARM_UPS = 3

/** How much the strict checks cost beside the signature that they guard. */
export const verifyToken: Figure = { name: 'verify-token', run }

async function run({ quick, random }: Bench): Promise<Result> {
  const source = tokenSource(random)
  const { keys, device: audience, now } = source
  const tokens = source.make(500)
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
            if (!opened.ok) throw new Error(`a good token was refused: ${opened.fault}`)
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
  const samples = await takeTurns(contenders, quick ? 9 : 25, random, WARM_UPS)
  return {
    title: '1  Strict verification of an authorization token',
    counts: 'CPU time of the process, all threads',
    rows: rowsOf(samples, BARE),
    targets: [costsAtMost(samples, OURS, BARE, LIMIT)],
    notes: [],
  }
}
