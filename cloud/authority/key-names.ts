import type { KeyFiles } from './key-files.ts'
import { assertRoot } from './known-root.ts'
import { sealingKeyId } from './sealing.ts'
import { WRONG_MASTER_KEY } from './signing-keys.ts'

/** The keys that a database cannot do without, by their names: a name says nothing of its key. */
export interface KeyNames {
  /** The kid of the root that its agents know. */
  root?: string | undefined
  /** The sealing keys that open its signing keys. */
  sealing: string[]
}

/** Throws when these are not the keys of a database with these names; it need not be there to be asked. */
export function assertNamedKeys({ root, sealing }: KeyNames, files: KeyFiles): void {
  assertRoot(root, files.root.signer.kid)
  const own = new Set(files.sealingKeys.map(sealingKeyId))
  if (!sealing.every((name) => own.has(name))) throw new Error(WRONG_MASTER_KEY)
}
