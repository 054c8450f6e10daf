import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, request as requestHttps } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { createSecureContext, rootCertificates } from 'node:tls'
import { CA_LIMIT } from '../../policy/documents/broker-document.ts'
import { WrongUsage } from '../options.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Sends an HTTP request: the part of `fetch` that the commands use. */
export type SendRequest = (url: string, init?: RequestInit) => Promise<Response>

/** Reads the certificates of a private CA. `option`: name of the option for error texts. */
export function readCa(option: string, file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new WrongUsage([`${option} ${file} cannot be read: ${(error as Error).message}`])
  }
  if (!text.includes('-----BEGIN CERTIFICATE-----') || text.includes('PRIVATE KEY'))
    throw new WrongUsage([`${option} ${file} must hold certificates in PEM form and no private key`])
  if (text.length > CA_LIMIT) throw new WrongUsage([`${option} ${file} is longer than ${CA_LIMIT} characters`])
  try {
    for (const certificate of text.match(CERTIFICATE) ?? []) validToOf(certificate)
  } catch (error) {
    throw new WrongUsage([`${option} ${file} holds a damaged certificate: ${(error as Error).message}`])
  }
  return text
}

/** End of the validity of a certificate. Throws if it is damaged. */
function validToOf(certificate: string): string {
  return new X509Certificate(certificate).validTo
}

/** What is wrong with the server's certificate, with the fix. Undefined for errors of another kind. */
export function certificateFault(error: unknown): string | undefined {
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate is for another host (${message}): use a host name of the certificate`
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return `the certificate is not valid now (${message}): renew it, and check the clock of this machine`
  if (code === undefined || !/CERT|SELF_SIGNED|UNABLE_TO/.test(code)) return undefined
  return `this machine does not trust the certificate (${message}): name the private CA with --ca FILE`
}

/** The public CAs and this private CA. */
export function withPublicCas(ca: string): string[] {
  return [...rootCertificates, ca]
}

/** `fetch` that also trusts the CA in this file. Without a file it is `fetch`. */
export function fetchTrustingFile(file: string | undefined): SendRequest {
  return file === undefined ? (url, init) => fetch(url, init) : fetchTrusting(readCa('--ca', file))
}

/**
 * `fetch` that also trusts the certificates in `ca`. Node.js 20 has no such option for `fetch`. Follows no redirects:
 * they are an error unless `redirect` is `manual`.
 */
export function fetchTrusting(ca: string): SendRequest {
  return fetchOver(new Agent({ keepAlive: true, secureContext: createSecureContext({ ca: withPublicCas(ca) }) }))
}

/** `fetch` that checks no certificate. Only for servers on this machine. */
export function fetchFromThisMachine(): SendRequest {
  return fetchOver(new Agent({ rejectUnauthorized: false }))
}

function fetchOver(agent: Agent): SendRequest {
  return async (url, init = {}) => {
    if (!url.startsWith('https:')) return fetch(url, init)
    const answer = await send(agent, new Request(url, init))
    const status = answer.statusCode ?? 0
    if (status >= 300 && status < 400 && status !== 304 && init.redirect !== 'manual') {
      answer.destroy()
      throw new TypeError('fetch failed', { cause: new Error(`it redirects with status ${status}`) })
    }
    return responseOf(answer, status)
  }
}

async function send(agent: Agent, request: Request): Promise<IncomingMessage> {
  const body = request.body ? Buffer.from(await request.arrayBuffer()) : undefined
  const { method, headers, signal } = request
  const length = body && { 'content-length': String(body.length) }
  return new Promise((resolve, reject) => {
    const options = { agent, method, signal, headers: { ...Object.fromEntries(headers), ...length } }
    const sending = requestHttps(request.url, options, resolve)
    sending.on('error', (error) =>
      // `fetch` also hides the reason in `cause`, and rejects with the reason of the signal.
      reject(signal.aborted ? (signal.reason as Error) : new TypeError('fetch failed', { cause: error })),
    )
    sending.end(body)
  })
}

function responseOf(answer: IncomingMessage, status: number): Response {
  const headers = new Headers()
  for (const [name, value] of Object.entries(answer.headers))
    for (const each of [value ?? []].flat()) headers.append(name, each)
  const hasBody = status !== 204 && status !== 304
  if (!hasBody) answer.resume()
  return new Response(hasBody ? (Readable.toWeb(answer) as ReadableStream<Uint8Array>) : null, { status, headers })
}
