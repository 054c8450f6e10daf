import { assert } from '../../../policy/assert.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { invalid } from '../foundation/failure.ts'
import { sharedSlots } from '../foundation/shared-slots.ts'

/** Length of a password, characters. */
export const PASSWORD_LENGTH = { min: 12, max: 128 }

/** Parameters of argon2id: 19 MiB, 2 passes, 1 thread (OWASP, 2026). */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
const SALT_BYTES = 16

/** Each hash keeps a thread of Node.js busy for about 30 ms. */
const withSlot = sharedSlots(
  { atWork: 2, atWorkOfOne: 2, waiting: 50, waitingOfOne: 25 },
  { text: 'too many people are signing in: try again', retryAfter: 1 },
)

/** Hashes a password with argon2id, outside the main thread. The work uses a slot of `holder`. */
export function hashPassword(holder: string, password: string, random: Randomness): Promise<string> {
  return withSlot(holder, async () => {
    const { hash } = await import('@node-rs/argon2')
    const made = await hash(password.normalize('NFKC'), { ...COST, salt: random.bytes(SALT_BYTES) })
    assert(made.startsWith('$argon2id$'), 'the password was not hashed with argon2id')
    return made
  })
}

/** A hash that no password has, with the same parameters: unknown users take as long as known ones. */
const UNKNOWN = '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'

/** True if the password has this hash. Without a hash, takes the same time and returns false. */
export function verifyPassword(holder: string, password: string, stored: string | null | undefined): Promise<boolean> {
  return withSlot(holder, async () => {
    const { verify } = await import('@node-rs/argon2')
    const isRight = await verify(stored ?? UNKNOWN, password.normalize('NFKC'))
    return isRight && typeof stored === 'string'
  })
}

/** Words that the most common long passwords consist of, without digits and signs. */
const COMMON: ReadonlySet<string> = new Set(
  `password passwort passwordpassword passwortpasswort mypassword thepassword newpassword meinpasswort
  adminpassword administrator administrators admin adminadmin changeme changemenow letmein letmeinletmein
  welcome welcometo willkommen qwerty qwertyuiop qwertzuiop qwertz qwertyqwerty qwertzqwertz qwertyuiopasdfghjkl
  asdfghjkl asdfghjklqwertyuiop qazwsxedc qazwsxedcrfv iloveyou iloveyouforever ichliebedich sunshine princess
  football baseball superman batman trustnoone trustno abc abcd abcdef abcdefgh abcdefghijkl abcdefghijklm
  dragon monkey master shadow secret geheim supersecret hallo hello helloworld hallowelt schalke untag
  untaguntag console default testtest testtesttest test testing user guest root correcthorsebatterystaple summer
  winter sommer fruehling herbst january september november q a p pass login access michael jordan computer
  internet samsung pokemon starwars`.split(/\s+/),
)

/** Minimum length of a name that a password must not consist of, characters. */
const OWN_WORD_LENGTH = 4
/** Minimum number of different characters. */
const VARIETY = 5

/**
 * Throws 400 if the password is too common or contains the person's own names. Ignores digits and signs, because guessing programs
 * try them first.
 */
export function assertGoodPassword(password: string, names: readonly string[], field = 'password'): void {
  const plain = password.normalize('NFKC').toLowerCase()
  const stem = plain.replaceAll(/[^\p{L}@$]+$/gu, '')
  const letters = stem.replaceAll('0', 'o').replaceAll('3', 'e').replaceAll('@', 'a').replaceAll('$', 's')
  const bare = (text: string) => text.replaceAll(/[^\p{L}]/gu, '')
  const isCommon =
    new Set(plain).size < VARIETY || COMMON.has(bare(plain)) || COMMON.has(bare(letters)) || isSequence(plain)
  if (isCommon)
    throw invalid(
      field,
      'is one of the most common passwords. Use several words, or a password manager',
      'password_common',
    )
  const own = names
    .flatMap((name) => name.toLowerCase().split(/[^\p{L}]+/u))
    .filter((word) => word.length >= OWN_WORD_LENGTH)
  const rest = own.reduce((text, word) => text.replaceAll(word, ''), bare(plain))
  if (own.length > 0 && rest.length < VARIETY)
    throw invalid(
      field,
      'consists of your name or address. Use several other words, or a password manager',
      'password_own_name',
    )
}

/** True for runs such as 123456789012, also with a repeated start. */
function isSequence(text: string): boolean {
  if (/[^0-9]/.test(text)) return false
  const steps = new Set([...text].slice(1).map((digit, i) => (Number(digit) - Number(text[i]) + 10) % 10))
  return steps.size === 1 || new Set(text.match(/.{1,3}/g)).size <= 2
}
