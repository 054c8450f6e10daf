import { lookup as systemLookup, Resolver } from 'node:dns/promises'
import {
  request as requestHttp,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import {
  checkAddress,
  checkTarget,
  type TargetRules,
  OutgoingFault,
  type OutgoingAnswer,
  type OutgoingFaultCode,
  type OutgoingHttp,
  type OutgoingRequest,
} from '../cloud/platform/outgoing/outgoing-http.ts'
import { GrowingBytes } from '../policy/growing-bytes.ts'

/** Resolves all addresses of a name. */
export type ResolveName = (
  name: string,
  rules: TargetRules,
  signal: AbortSignal,
) => Promise<{ address: string; family: number }[]>

const HEADER_LIMIT = 8_192
const ASK_NAME_WITHIN_MS = 3_000

/** Sends requests over real sockets. Tests pass another resolver as `resolve`. */
export function outgoingHttp(resolve: ResolveName = resolveName): OutgoingHttp {
  return {
    async send(request, signal) {
      const target = checkTarget(request.url, request.rules)
      if ('refusal' in target) throw new OutgoingFault('address_refused', target.refusal)
      if (signal.aborted) throw new OutgoingFault('timeout', 'no answer in time')
      const lookup = guardedLookup(resolve, request.rules, signal)
      try {
        return await exchange(target.url, request, lookup, signal)
      } catch (error) {
        throw faultOf(error, signal)
      }
    },
  }
}

/**
 * Resolves a name through DNS. The function avoids the thread pool, so that a slow name server blocks no other work. If
 * private targets are allowed, the function uses the system's resolver.
 */
async function resolveName(
  name: string,
  { privateTargets }: TargetRules,
  signal: AbortSignal,
): Promise<{ address: string; family: number }[]> {
  if (privateTargets) return systemLookup(name, { all: true })
  const resolver = new Resolver({ timeout: ASK_NAME_WITHIN_MS, tries: 2 })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason
    const of = (settled: typeof v4, family: number) =>
      settled.status === 'fulfilled' ? settled.value.map((address) => ({ address, family })) : []
    return [...of(v4, 4), ...of(v6, 6)]
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** `lookup` for a socket that checks the resolved addresses. Rejects a name if any of its addresses is forbidden. */
function guardedLookup(resolve: ResolveName, rules: TargetRules, signal: AbortSignal): LookupFunction {
  return (name, options, done) => {
    resolve(name.replace(/\.+$/, ''), rules, signal)
      .then((found) => {
        const [first] = found
        if (!first) throw new OutgoingFault('name_not_found', 'the name has no address')
        const refused = found.map(({ address }) => checkAddress(address, rules)).find((r) => r !== undefined)
        if (refused) throw new OutgoingFault('address_refused', refused.refusal)
        if (options.all) done(null, found)
        else done(null, first.address, first.family)
      })
      .catch((error: unknown) => done(error as NodeJS.ErrnoException, options.all ? [] : '', 0))
  }
}

/** Maximum number of interim answers (status 1xx) before the answer. */
const INTERIM_LIMIT = 16

function exchange(
  url: URL,
  request: OutgoingRequest,
  lookup: LookupFunction,
  signal: AbortSignal,
): Promise<OutgoingAnswer> {
  const { method, headers } = request
  const body = request.bytes ?? request.body
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...length, connection: 'close' },
    agent: false,
    lookup,
    signal,
    maxHeaderSize: HEADER_LIMIT,
  }
  return new Promise((resolve, reject) => {
    const sending: ClientRequest = url.protocol === 'https:' ? requestHttps(url, options) : requestHttp(url, options)
    sending.on('socket', (socket) =>
      socket.once('connect', () => {
        const refused =
          socket.remoteAddress === undefined ? undefined : checkConnected(socket.remoteAddress, request.rules)
        if (refused) sending.destroy(refused)
      }),
    )
    sending.on('error', reject)
    let interim = 0
    sending.on('information', () => {
      if (++interim > INTERIM_LIMIT) sending.destroy(new OutgoingFault('not_http', 'it announces answers without end'))
    })
    sending.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new OutgoingFault('not_http', 'it answered with another protocol'))
    })
    sending.on('response', (response) => {
      // From now on the caller gets a response, even if the body ends early.
      const finish = ({ body: read, isCut }: { body: Uint8Array; isCut: boolean }) => {
        resolve({ status: response.statusCode ?? 0, headers: single(response.headers), body: read, isCut })
        sending.destroy()
      }
      sending.removeListener('error', reject).on('error', () => undefined)
      readUpTo(response, request.answerLimit, finish)
    })
    sending.end(body)
  })
}

function checkConnected(address: string, rules: TargetRules): OutgoingFault | undefined {
  // A dual-stack socket shows IPv4 addresses in mapped form.
  const refused = checkAddress(address.replace(/^::ffff:(?=\d+\.)/, ''), rules)
  return refused && new OutgoingFault('address_refused', refused.refusal)
}

/** Maximum number of chunks of an answer. Each costs a turn of its own, however small it is. */
const CHUNKS_LIMIT = 65_536

function readUpTo(
  response: IncomingMessage,
  limit: number,
  finish: (read: { body: Uint8Array; isCut: boolean }) => void,
): void {
  const bytes = new GrowingBytes()
  let chunks = 0
  const end = (isCut: boolean) => finish({ body: bytes.whole().subarray(0, limit), isCut })
  response.on('data', (chunk: Buffer) => {
    bytes.append(chunk)
    if (bytes.size > limit || ++chunks > CHUNKS_LIMIT) end(true)
  })
  response.on('end', () => end(false))
  response.on('error', () => end(true))
  response.on('close', () => end(true))
}

function single(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  )
}

const FAULTS: Readonly<Record<string, OutgoingFaultCode>> = {
  ENOTFOUND: 'name_not_found',
  ENODATA: 'name_not_found',
  EAI_AGAIN: 'name_not_found',
  ESERVFAIL: 'name_not_found',
  ETIMEOUT: 'name_not_found',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  ETIMEDOUT: 'timeout',
  EPROTO: 'tls_failed',
}

/** Converts the error of a socket. The message contains neither an address nor a host name. */
function faultOf(error: unknown, signal: AbortSignal): OutgoingFault {
  if (error instanceof OutgoingFault) return error
  if (signal.aborted) return new OutgoingFault('timeout', 'no answer in time')
  const code = String((error as { code?: unknown } | null)?.code ?? '')
  if (code.startsWith('HPE_')) return new OutgoingFault('not_http', `the answer is no HTTP (${code})`)
  if (/^ERR_(?:TLS|SSL)|CERT|SELF_SIGNED|UNABLE_TO/.test(code))
    return new OutgoingFault('tls_failed', `the certificate or TLS is not in order (${code})`)
  return new OutgoingFault(FAULTS[code] ?? 'connection_failed', `no answer (${code === '' ? 'unknown' : code})`)
}
