import type { KeyFiles } from './key-files.ts'
import { assertRoot } from './known-root.ts'
import { sealingKeyId } from './sealing.ts'
import { WRONG_MASTER_KEY } from './signing-keys.ts'

/** Names of the keys that a database needs. A name reveals nothing about its key. */
export interface KeyNames {
  /** kid of the root key that agents trust. */
  root?: string | undefined
  /** Names of the sealing keys that open the database's signing keys. */
  sealing: string[]
}

/** Throws if the files lack these keys. Needs no database. */
export function assertNamedKeys({ root, sealing }: KeyNames, files: KeyFiles): void {
  assertRoot(root, files.root.signer.kid)
  const own = new Set(files.sealingKeys.map(sealingKeyId))
  if (!sealing.every((name) => own.has(name))) throw new Error(WRONG_MASTER_KEY)
}
