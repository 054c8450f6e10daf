import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls'
import type { CertificateStatus, ServerCertificate } from '../../cloud/platform/foundation/config.ts'
import type { WriteLogLine } from '../../policy/rate-limited-log.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { WrongUsage } from '../options.ts'

/** How often the files are read again, ms. */
const CHECK_EVERY_MS = 5_000
/** The log warns about the expiry once in this time, ms. */
const WARN_EVERY_MS = 24 * 3_600_000
/** Maximum time before the expiry at which the warnings begin, ms. Short-lived certificates: a quarter of their life. */
const WARN_BEFORE_MS = 14 * 24 * 3_600_000
/** Maximum length of a file, bytes. */
const FILE_LIMIT = 256 * 1024
const OTHERS_READ = 0o004

/** Paths of the certificate chain and of its key, both PEM. */
interface TlsFiles {
  readonly tlsCert: string
  readonly tlsKey: string
}

export interface CertificateParts {
  platform: Pick<Platform, 'clock' | 'timers'>
  log: { info: WriteLogLine; warn: WriteLogLine }
  /** Host names and addresses that clients get. The certificate must name them. */
  hosts: readonly string[]
}

/** The files of a command's settings. Undefined without TLS; throws `WrongUsage` if one of both is missing. */
export function tlsFilesOf(settings: {
  tlsCert: string | undefined
  tlsKey: string | undefined
}): TlsFiles | undefined {
  const { tlsCert, tlsKey } = settings
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined) throw new WrongUsage(['--tls-key needs --tls-cert: the file with the certificate'])
  if (tlsKey === undefined) throw new WrongUsage(['--tls-cert needs --tls-key: the file with the private key'])
  return { tlsCert, tlsKey }
}

/** Reads the files and watches them. Throws `WrongUsage` if they are not usable. Call `stop` at the end. */
export function openServerCertificate(
  files: TlsFiles,
  parts: CertificateParts,
): ServerCertificate & { readonly stop: () => void } {
  const texts = readTexts(files)
  const pair = 'fault' in texts ? texts : pairOf(files, texts)
  if ('fault' in pair) throw new WrongUsage([pair.fault])
  return new WatchedCertificate(files, parts, pair)
}

interface Texts {
  cert: string
  key: string
  /** True if every user of the machine can read the key. */
  isOpen: boolean
}

interface Pair extends Texts {
  leaf: X509Certificate
}

interface Fault {
  fault: string
}

function readTexts({ tlsCert, tlsKey }: TlsFiles): Texts | Fault {
  try {
    const { mode } = statSync(tlsKey)
    return { cert: textOf(tlsCert), key: textOf(tlsKey), isOpen: (mode & OTHERS_READ) !== 0 }
  } catch (error) {
    return { fault: `the TLS certificate or key cannot be read: ${(error as Error).message}` }
  }
}

function textOf(file: string): string {
  const { size } = statSync(file)
  if (size > FILE_LIMIT) throw new Error(`${file} is longer than ${FILE_LIMIT} bytes`)
  return readFileSync(file, 'utf8')
}

/** Checks that a TLS server can use both texts. */
function pairOf({ tlsCert, tlsKey }: TlsFiles, texts: Texts): Pair | Fault {
  const leaf = attempt(() => new X509Certificate(texts.cert))
  if (!leaf) return { fault: `${tlsCert} must hold certificates in PEM form, that of the server first` }
  const key = attempt(() => createPrivateKey(texts.key))
  if (!key) return { fault: `${tlsKey} must hold a private key in PEM form without a password` }
  if (!leaf.checkPrivateKey(key))
    return { fault: `the key in ${tlsKey} does not belong to the first certificate in ${tlsCert}` }
  try {
    createSecureContext(optionsOf(texts))
    return { ...texts, leaf }
  } catch (error) {
    return { fault: `TLS does not accept ${tlsCert} and ${tlsKey}: ${(error as Error).message}` }
  }
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

function optionsOf({ cert, key }: Pick<Texts, 'cert' | 'key'>): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2' }
}

/**
 *   read the files ─▶ unchanged ─▶ wait 5 s ─▶ read again …
 *        ├─ a good new pair: all servers use it for new connections
 *        └─ a bad new pair, twice the same: log it once, and keep the old pair
 */
class WatchedCertificate implements ServerCertificate {
  readonly #files: TlsFiles
  readonly #parts: CertificateParts
  readonly #servers = new Set<Server>()
  #pair: Pair
  /** The latest fault, and whether the log has it. A renewal writes two files, so the first fault may pass. */
  #fault: { text: string; isLogged: boolean } | undefined
  #warnedAtMs: number | undefined
  #cancel: Cancel | undefined
  #isStopped = false

  constructor(files: TlsFiles, parts: CertificateParts, pair: Pair) {
    this.#files = files
    this.#parts = parts
    this.#pair = pair
    this.#warnOfPair()
    this.#warnOfExpiry()
    this.#wait()
  }

  options(): SecureContextOptions {
    return optionsOf(this.#pair)
  }

  attach(server: Server): void {
    this.#servers.add(server)
    server.once('close', () => this.#servers.delete(server))
  }

  status(): CertificateStatus {
    const fault = this.#fault?.isLogged === true ? this.#fault.text : undefined
    return { expiresMs: expiresMs(this.#pair), ...(fault !== undefined && { fault }) }
  }

  readonly stop = (): void => {
    this.#isStopped = true
    this.#cancel?.()
  }

  #wait(): void {
    if (this.#isStopped) return
    this.#cancel = this.#parts.platform.timers.after(CHECK_EVERY_MS, () => {
      this.#check()
      this.#wait()
    })
  }

  #check(): void {
    const texts = readTexts(this.#files)
    if ('fault' in texts) this.#keep(texts.fault)
    else if (texts.cert === this.#pair.cert && texts.key === this.#pair.key) this.#fault = undefined
    else {
      const pair = pairOf(this.#files, texts)
      if ('fault' in pair) this.#keep(pair.fault)
      else this.#replace(pair)
    }
    this.#warnOfExpiry()
  }

  #keep(text: string): void {
    if (this.#fault?.text !== text) this.#fault = { text, isLogged: false }
    else if (!this.#fault.isLogged) {
      this.#fault.isLogged = true
      this.#parts.log.warn({ fault: text }, 'the new TLS certificate is not usable, so the former one stays in use')
    }
  }

  #replace(pair: Pair): void {
    this.#pair = pair
    this.#fault = undefined
    this.#warnedAtMs = undefined
    for (const server of this.#servers) server.setSecureContext(this.options())
    this.#parts.log.info({ expires: isoOf(pair) }, 'the TLS certificate was renewed')
    this.#warnOfPair()
  }

  #warnOfPair(): void {
    const { hosts, log } = this.#parts
    const { leaf, isOpen } = this.#pair
    if (isOpen)
      log.warn(
        { file: this.#files.tlsKey },
        'all users of this machine can read the TLS key: remove their access with chmod o-rwx',
      )
    const missing = hosts.filter((host) => (isIP(host) ? leaf.checkIP(host) : leaf.checkHost(host)) === undefined)
    if (missing.length > 0)
      log.warn(
        { hosts: missing, names: leaf.subjectAltName },
        'the TLS certificate does not name this host, so clients reject it: set the public address, or change the certificate',
      )
  }

  #warnOfExpiry(): void {
    const { platform, log } = this.#parts
    const end = expiresMs(this.#pair)
    const life = end - Date.parse(this.#pair.leaf.validFrom)
    const left = end - platform.clock.wall()
    const now = platform.clock.elapsed()
    if (left > Math.min(WARN_BEFORE_MS, life / 4)) return
    if (this.#warnedAtMs !== undefined && now - this.#warnedAtMs < WARN_EVERY_MS) return
    this.#warnedAtMs = now
    const text = left > 0 ? 'the TLS certificate expires soon: renew it' : 'the TLS certificate has expired: renew it'
    log.warn({ expires: isoOf(this.#pair), file: this.#files.tlsCert }, text)
  }
}

function expiresMs({ leaf }: Pair): number {
  return Date.parse(leaf.validTo)
}

function isoOf(pair: Pair): string {
  return new Date(expiresMs(pair)).toISOString()
}
