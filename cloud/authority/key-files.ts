import { join } from 'node:path'
import { z } from 'zod'
import { newKey, signer, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness, SecretFiles } from '../../policy/platform.ts'

/**
 * The two keys that are not in the database: the master key that seals those that are, and the root
 * key that signs key sets. They lie in `DATA/keys`, readable by the owner alone, and belong in the backup
 * of secrets, not in that of data.
 */
export interface KeyFiles {
  readonly masterKey: Uint8Array
  readonly root: { readonly x: string; readonly signer: Signer }
}

const RootFile = z.strictObject({ x: z.string().length(43), secret: z.string() })

/** Reads the root key and the sealing key, or makes them on the first start. Throws when one is damaged. */
export function loadKeyFiles(dataDir: string, files: SecretFiles, random: Randomness): KeyFiles {
  const folder = join(dataDir, 'keys')
  const readOrMake = (file: string, make: () => string): string => {
    const known = files.read(file)
    if (known !== undefined) return known.trim()
    const text = make()
    files.write(file, text)
    return text
  }
  const masterKey = Buffer.from(readOrMake(join(folder, 'master.key'), () => Buffer.from(random.bytes(32)).toString('base64url')), 'base64url')
  if (masterKey.length !== 32) throw new Error(`${join(folder, 'master.key')} does not hold 32 bytes: restore it from your backup of keys`)
  const file = join(folder, 'root.json')
  const text = readOrMake(file, () => {
    const { x, secret } = newKey(random)
    return JSON.stringify({ x, secret: secret.toString('base64url') })
  })
  const root = RootFile.safeParse(safeJson(text))
  if (!root.success) throw new Error(`${file} is damaged: restore it from your backup of keys`)
  return { masterKey, root: { x: root.data.x, signer: signer(root.data.x, Buffer.from(root.data.secret, 'base64url')) } }
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
