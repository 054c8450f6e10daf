import { certificateFault } from './tls/private-ca.ts'

/** Causes that an error of `fetch` or of a client may nest. */
const CAUSES_LIMIT = 5

/**
 * Why a server at `url` cannot be reached, with the remedy. `setting`: the option or variable with the address, for the
 * remedy. Undefined for errors of another kind, such as a timeout.
 */
export function connectionFault(error: unknown, url: string, setting: string): string | undefined {
  const cause = deepestCause(error)
  const { code = '', message = '' } = cause as NodeJS.ErrnoException
  const { protocol, host, hostname } = new URL(url)
  if (code === 'ECONNREFUSED')
    return `no program answers at ${host} (ECONNREFUSED): is the cloud running? If it has another address, set ${setting}`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `no address is known for the host ${hostname} (${code}): check ${setting} and the network`
  // Servers of http answer a TLS handshake with text, or close the connection.
  if (protocol === 'https:' && (/^ERR_SSL_|^EPROTO$/.test(code) || /wrong version number/.test(message)))
    return `the server does not speak TLS (${code}): if it serves http, set ${setting} to http://${host}/…`
  // Servers of https close a connection that begins with http.
  if (protocol === 'http:' && /^UND_ERR_SOCKET$|^HPE_|^ECONNRESET$/.test(code))
    return `the server closed the connection without an answer (${code}): if it serves https, set ${setting} to https://${host}/…`
  return certificateFault(cause)
}

function deepestCause(error: unknown): unknown {
  let cause = error
  for (let i = 0; i < CAUSES_LIMIT && cause instanceof Error && cause.cause !== undefined; i++) cause = cause.cause
  return cause
}
