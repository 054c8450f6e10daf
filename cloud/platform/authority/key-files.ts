import { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { base64url, calculateJwkThumbprint, exportJWK, importJWK } from 'jose'
import { z } from 'zod'
import { assert } from '../../../policy/assert.ts'
import { newKey, createSigner, type Signer } from '../../../policy/documents/keys.ts'
import type { Randomness, SecretFiles } from '../../../policy/platform.ts'
import { KEY_BYTES } from './sealing.ts'

/**
 * Keys outside the database, by default in `DATA/keys`, readable by the owner only. `master.key` contains the sealing
 * keys, newest first, one per line. `root.json` contains the root key. Back up these files separately from the
 * database.
 */
export interface KeyFiles {
  /** The first key seals texts. Each key can open the texts that it sealed. */
  readonly sealingKeys: readonly Uint8Array[]
  readonly root: RootKey
}

/** The key that signs key sets. */
interface RootKey {
  readonly x: string
  /** Thumbprint of the root key (RFC 7638), 32 bytes. Enrolment codes contain the first bytes of the thumbprint. */
  readonly thumbprint: Uint8Array
  readonly signer: Signer
}

/** `root.json`: a private JWK (RFC 8037). */
const RootFile = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() })
/** First format of `root.json`: PKCS #8 in base64url. */
const FirstRootFile = z.strictObject({ x: z.string().length(43), secret: z.string() })

/** Paths of the two key files. */
export interface KeyPlace {
  readonly master: string
  readonly root: string
}

/** Storage of the key files. Several machines may share it. */
export interface KeyStorage extends SecretFiles {
  /**
   * Writes the file unless it exists. Atomic: if several processes write the file at the same time, the text of one
   * process stays.
   */
  create(file: string, text: string): void
}

/** The key files of a data folder. */
export function keysOf(dataDir: string): KeyPlace {
  return keyFilesIn(join(dataDir, 'keys'))
}

/** The key files in this folder. */
export function keyFilesIn(folder: string): KeyPlace {
  return { master: join(folder, 'master.key'), root: join(folder, 'root.json') }
}

/** Reads the root and sealing keys; creates them at the first start. Throws if a file is damaged. */
export async function loadKeyFiles(place: KeyPlace, files: KeyStorage, random: Randomness): Promise<KeyFiles> {
  const { master, root: file } = place
  const newMaster = () => Promise.resolve(textOf([random.bytes(KEY_BYTES)]))
  const sealingKeys = keysIn(await readOrCreate(files, master, newMaster), master)
  const root = await readRoot(await readOrCreate(files, file, () => newRoot(random))).catch(() => undefined)
  if (!root) throw new Error(`${file} is damaged: restore it from your backup of keys`)
  return { sealingKeys, root }
}

/** Reads the file again after its creation, because another process may have created it first. */
async function readOrCreate(files: KeyStorage, file: string, newText: () => Promise<string>): Promise<string> {
  const known = files.read(file)
  if (known !== undefined) return known
  files.create(file, await newText())
  const created = files.read(file)
  assert(created !== undefined, 'a created key file exists')
  return created
}

async function newRoot(random: Randomness): Promise<string> {
  const { x, secret } = newKey(random)
  const { kid, privateKey } = createSigner(x, secret)
  return JSON.stringify({ ...(await exportJWK(privateKey)), kid, alg: 'EdDSA', use: 'sig' })
}

/** Throws if the text is no private key, or its public and secret parts do not match. */
async function readRoot(text: string): Promise<RootKey> {
  const value: unknown = JSON.parse(text)
  const first = FirstRootFile.safeParse(value)
  if (first.success) return rootOf(createSigner(first.data.x, Buffer.from(first.data.secret, 'base64url')).privateKey)
  const key = await importJWK(RootFile.parse(value), 'EdDSA', { extractable: true })
  if (key instanceof Uint8Array) throw new TypeError('a symmetric key')
  return rootOf(KeyObject.from(key))
}

async function rootOf(privateKey: KeyObject): Promise<RootKey> {
  const jwk = await exportJWK(privateKey)
  const x = String(jwk.x)
  return {
    x,
    thumbprint: base64url.decode(await calculateJwkThumbprint(jwk)),
    signer: createSigner(x, privateKey.export({ format: 'der', type: 'pkcs8' })),
  }
}

/** Adds a new sealing key in front. Returns all keys. */
export function addSealingKey({ master }: KeyPlace, files: SecretFiles, random: Randomness): Uint8Array[] {
  const known = files.read(master)
  if (known === undefined) throw new Error(`there is no ${master}: name the folder of the cloud's data with --data`)
  const keys = [random.bytes(KEY_BYTES), ...keysIn(known, master)]
  files.write(master, textOf(keys))
  return keys
}

/** Removes all other sealing keys. The cloud can no longer open texts that the removed keys sealed. */
export function discardOtherSealingKeys({ master }: KeyPlace, files: SecretFiles, key: Uint8Array): void {
  files.write(master, textOf([key]))
}

const textOf = (keys: readonly Uint8Array[]) => keys.map((key) => Buffer.from(key).toString('base64url')).join('\n')

function keysIn(text: string, file: string): Buffer[] {
  const keys = text
    .trim()
    .split(/\s+/)
    .map((line) => Buffer.from(line, 'base64url'))
  if (keys.some((key) => key.length !== KEY_BYTES))
    throw new Error(`${file} does not hold keys of ${KEY_BYTES} bytes: restore it from your backup of keys`)
  return keys
}
