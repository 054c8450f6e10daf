import { join } from 'node:path'
import { z } from 'zod'
import { newKey, signer, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness, SecretFiles } from '../../policy/platform.ts'
import { KEY_BYTES } from './sealing.ts'

/**
 * The keys that are not in the database: the sealing keys (`master.key`, the newest first, one a line) that seal those that are, and the
 * root key that signs key sets. They lie in `DATA/keys`, readable by the owner alone, and belong in the backup
 * of secrets, not in that of data.
 */
export interface KeyFiles {
  /** The first seals, all open. */
  readonly sealingKeys: readonly Uint8Array[]
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
  const sealingKeys = keysIn(
    readOrMake(sealingFile(dataDir), () => textOf([random.bytes(KEY_BYTES)])),
    dataDir,
  )
  const file = join(folder, 'root.json')
  const text = readOrMake(file, () => {
    const { x, secret } = newKey(random)
    return JSON.stringify({ x, secret: secret.toString('base64url') })
  })
  const root = RootFile.safeParse(safeJson(text))
  if (!root.success) throw new Error(`${file} is damaged: restore it from your backup of keys`)
  return {
    sealingKeys,
    root: { x: root.data.x, signer: signer(root.data.x, Buffer.from(root.data.secret, 'base64url')) },
  }
}

/** Puts a new sealing key before the others; answers all. */
export function addSealingKey(dataDir: string, files: SecretFiles, random: Randomness): Uint8Array[] {
  const known = files.read(sealingFile(dataDir))
  if (known === undefined)
    throw new Error(`there is no ${sealingFile(dataDir)}: name the folder of the cloud's data with --data`)
  const keys = [random.bytes(KEY_BYTES), ...keysIn(known, dataDir)]
  files.write(sealingFile(dataDir), textOf(keys))
  return keys
}

/** Forgets every sealing key but this one: what others have sealed can never be opened again. */
export function keepSealingKey(dataDir: string, files: SecretFiles, key: Uint8Array): void {
  files.write(sealingFile(dataDir), textOf([key]))
}

const sealingFile = (dataDir: string) => join(dataDir, 'keys', 'master.key')

const textOf = (keys: readonly Uint8Array[]) => keys.map((key) => Buffer.from(key).toString('base64url')).join('\n')

function keysIn(text: string, dataDir: string): Buffer[] {
  const keys = text
    .trim()
    .split(/\s+/)
    .map((line) => Buffer.from(line, 'base64url'))
  if (keys.some((key) => key.length !== KEY_BYTES))
    throw new Error(
      `${sealingFile(dataDir)} does not hold keys of ${KEY_BYTES} bytes: restore it from your backup of keys`,
    )
  return keys
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
