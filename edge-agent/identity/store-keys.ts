import { join } from 'node:path'
import { z } from 'zod'
import type { SecretFiles } from '../../policy/platform.ts'
import { storeKeyId } from '../../policy/operator-verifiers.ts'
import type { Log } from '../log.ts'

/**
 * Maximum keys: the newest key and the previous key. The held policy may name the previous key until the next policy
 * arrives.
 */
const HELD = 2
const FILE = 'store-keys.json'

const StoreKey = z.string().regex(/^[\w-]{43}$/)
const StoredKeys = z.strictObject({ keys: z.array(StoreKey).max(HELD) })

/**
 * Store keys: keys of the operators' verifiers, which the cloud sends in each login answer. The agent stores these keys
 * in a private file, so that operators can sign in after an offline restart.
 */
export interface StoreKeys {
  /** Returns the key with this id, or undefined if the agent does not hold it. */
  find(id: string | undefined): string | undefined
  /** Stores the key of a login answer. Ignores a value that is no key. */
  store(key: unknown): void
}

interface StoreKeysParts {
  dataDir: string
  files: SecretFiles
  log: Log
}

/** Opens the stored keys. A missing or damaged file counts as empty, because the next login sends the key again. */
export function openStoreKeys({ dataDir, files, log }: StoreKeysParts): StoreKeys {
  const file = join(dataDir, FILE)
  let held = keysIn(files.read(file))
  return {
    find: (id) => (id === undefined ? undefined : held.find((key) => storeKeyId(key) === id)),
    store(value) {
      const { data: key } = StoreKey.safeParse(value)
      if (key === undefined || key === held[0]) return
      held = [key, ...held.filter((each) => each !== key)].slice(0, HELD)
      try {
        files.write(file, JSON.stringify({ keys: held }))
      } catch (error) {
        log.warn(
          { err: error, file },
          'the key of the operators’ verifiers could not be stored: after a restart, operators sign in only once the cloud is reached',
        )
      }
    },
  }
}

function keysIn(text: string | undefined): string[] {
  try {
    return StoredKeys.safeParse(JSON.parse(text ?? '')).data?.keys ?? []
  } catch {
    return []
  }
}
