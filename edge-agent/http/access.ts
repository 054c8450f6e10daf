import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { secretsEqual } from '../../policy/secrets-equal.ts'
import type { Caller } from '../lanes/lane-states.ts'
import { BROWSER_LIFE_MS, type Pairing } from '../ledger/pairings.ts'
import type { Log } from '../log.ts'
import type { Agent } from '../runtime.ts'
import { hashSecret, newSecret } from '../identity/identity.ts'
import { AGENT_OPERATIONS, type AgentOperation } from './operations.ts'

interface NodeEnv {
  incoming?: { socket?: { remoteAddress?: string } }
  outgoing?: { destroy(): void }
}

function nodeOf(c: Context): NodeEnv | undefined {
  return c.env as NodeEnv | undefined
}

/** Address of the sender. */
export function addressOf(c: Context): string | undefined {
  return nodeOf(c)?.incoming?.socket?.remoteAddress
}

/** True if the request comes from the agent's own machine. */
export function isLoopback(c: Context): boolean {
  // A call within the process, as in tests, has no socket. If the sender reset the socket, the sender's address is
  // unknown.
  if (nodeOf(c)?.incoming === undefined) return true
  const address = addressOf(c) ?? ''
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/** True if the request came over TLS. */
export function isTls(c: Context): boolean {
  return new URL(c.req.url).protocol === 'https:'
}

/** Node's response object, which can close the connection. Undefined for a call within the process. */
export function connectionOf(c: Context): { destroy(): void } | undefined {
  return nodeOf(c)?.outgoing
}

/**
 * Decides which callers may use the agent's local API and pages (ADR staff). Programs send the agent's credential, or a
 * credential of their own, as `Authorization: Bearer`. Paired browsers send a cookie.
 */
export interface Access {
  /** Undefined for a caller that is not paired. */
  callerOf(c: Context): PairedCaller | undefined
  /** Whether this caller may send this request to `/v1`. A program with the rights of a till only reports. */
  mayCall(c: Context): 'yes' | 'unpaired' | 'right_missing'
  /** Whether this caller may open the pages, with their goods, alarms and staff. A program with the rights of a till may not. */
  mayOpenPages(c: Context): boolean
  /** Uses up a one-time link and pairs the browser. False if the code is unknown, used or expired. */
  redeemLink(c: Context, code: string): Promise<boolean>
  /** Renews the cookie of a paired browser once a day. */
  renewCookie(c: Context): void
}

type PairedCaller = Exclude<Caller, 'unpaired'>

interface AccessParts {
  agent: Pick<Agent, 'identity' | 'config' | 'ledger' | 'platform'>
  log: Log
  /** Reads the agent's credential from its file; undefined if there is none. Throws if the file cannot be read. */
  credential(): string | undefined
}

/** True for a program with the rights of a till. */
const onlyReports = ({ rights }: PairedCaller) => rights !== undefined && rights.length > 0

const operations: readonly AgentOperation[] = Object.values(AGENT_OPERATIONS)

/** Opens the access control of this agent. */
export function openAccess({ agent, log, credential }: AccessParts): Access {
  const { pairings, commits } = agent.ledger
  const nowMs = () => agent.platform.clock.wall()
  // Browsers share cookies between all ports of a machine, and a machine may run several agents.
  const cookieName = `untag_${agent.identity.agentId}`
  let isUnreadable = false

  function ownCredential(): string | undefined {
    try {
      const text = credential()
      isUnreadable = false
      return text
    } catch (error) {
      if (!isUnreadable) log.error({ err: error }, 'the credential file cannot be read: programs that send it get 401')
      isUnreadable = true
      return undefined
    }
  }

  function programWith(token: string): PairedCaller | undefined {
    const own = ownCredential()
    if (own !== undefined && secretsEqual(token, own)) return { id: 'credential' }
    return pairings.find('program', hashSecret(token), nowMs())
  }

  function browserOf(c: Context): Pairing | undefined {
    const secret = getCookie(c, cookieName)
    return secret === undefined ? undefined : pairings.find('browser', hashSecret(secret), nowMs())
  }

  function callerOf(c: Context): PairedCaller | undefined {
    const token = /^Bearer +(\S{20,200}) *$/i.exec(c.req.header('authorization') ?? '')?.[1]
    return token === undefined ? browserOf(c) : programWith(token)
  }

  function sendCookie(c: Context, secret: string): void {
    const maxAge = BROWSER_LIFE_MS / 1_000
    setCookie(c, cookieName, secret, { path: '/', httpOnly: true, sameSite: 'Strict', maxAge, secure: isTls(c) })
  }

  return {
    callerOf,
    mayCall(c) {
      const operation = operations.find(({ method, path }) => method === c.req.method && path === c.req.path)
      if (operation?.needsCredential === false) return 'yes'
      const caller = callerOf(c)
      const isTill = caller !== undefined && onlyReports(caller)
      if (caller && (!isTill || operation?.isForTills === true)) return 'yes'
      if (operation?.openOnMachine === true && !agent.config.requirePairing && isLoopback(c)) return 'yes'
      return isTill ? 'right_missing' : 'unpaired'
    },
    mayOpenPages(c) {
      const caller = callerOf(c)
      return caller !== undefined && !onlyReports(caller)
    },
    async redeemLink(c, code) {
      // If the browser is already paired, the link is not used up. The user may have opened the link twice, or the
      // first answer may have been lost.
      if (browserOf(c)) return true
      const secret = newSecret('browser', agent.platform.random)
      const browser = await commits.durably(() => pairings.redeemLink(hashSecret(code), hashSecret(secret), nowMs()))
      if (!browser) return false
      sendCookie(c, secret)
      log.info({ id: browser.id }, 'a browser was paired with a one-time link')
      return true
    },
    renewCookie(c) {
      const secret = getCookie(c, cookieName)
      const browser = browserOf(c)
      if (!browser || secret === undefined || !pairings.isUseDue(browser, nowMs())) return
      sendCookie(c, secret)
      commits
        .durably(() => pairings.noteUse(browser, nowMs()))
        .catch((error: unknown) => log.warn({ err: error }, 'the last use of a browser could not be stored'))
    },
  }
}
