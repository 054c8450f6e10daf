import { join } from 'node:path'
import { openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import { openMetadata } from '../../edge-agent/ledger/file/watermark.ts'
import {
  LOCAL_URLS,
  openPairings,
  TILL_RIGHTS,
  type Pairing,
  type Pairings,
  type TillRight,
} from '../../edge-agent/ledger/pairings.ts'
import { ROTATION_REQUESTED } from '../../edge-agent/link/login/renew-key.ts'
import { hashSecret, newSecret, pairingUrl, readIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import { credentialFile } from '../../host/credential-file.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { printTable, printLine } from '../../host/output.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import {
  EDGE_OPTIONS,
  type EDGE_CREDENTIAL_OPTIONS,
  type EDGE_LINK_OPTIONS,
  type EDGE_PAIR_OPTIONS,
  type EDGE_PAIRINGS_OPTIONS,
  type EDGE_ROTATE_KEY_OPTIONS,
} from '../../host/settings/edge.ts'
import { SaleNames } from '../../policy/till-sale.ts'
import { nearby } from '../../host/private-files.ts'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** Commands of a simulated device, by the first word of a line. The other words are the arguments. */
export type StdinCommands = Readonly<Record<string, (...words: string[]) => void>>

/** Runs each line of stdin as a command. Call the returned function to stop. */
export function runStdinCommands(orders: StdinCommands): () => void {
  return onStdinLine((line) => {
    const [order = '', ...words] = line.split(/\s+/)
    const runCommand = Object.hasOwn(orders, order) ? orders[order] : undefined
    if (runCommand) runCommand(...words)
    else if (order !== '') printLine(`type one of: ${Object.keys(orders).join(', ')}`)
  })
}

/** Calls `run` with each line of stdin, without spaces around it. Call the returned function to stop. */
export function onStdinLine(run: (line: string) => void): () => void {
  if (process.stdin.isTTY && isInBackground()) return () => undefined
  // A terminal that was closed has nothing more to say.
  process.stdin.on('error', () => undefined)
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => run(line.trim()))
  return () => lines.close()
}

/**
 * True if the shell started this process with `&`. The kernel stops such a process when it reads from the terminal. Only
 * Linux tells it: fields 5 and 8 of /proc/PID/stat are the process group, and the group in the foreground (proc(5)).
 */
export function isInBackground(): boolean {
  try {
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return group !== foreground
  } catch {
    return false
  }
}

/** Address of an agent that has not stored its own address yet. */
const DEFAULT_URL = `http://${EDGE_OPTIONS.host.fallback}:${EDGE_OPTIONS.port.fallback}`

/** Commands about access to the agent's local API. The agent may run meanwhile. */

/** Reads the identity of the agent in a data folder. Throws if there is none. */
export function assertEnrolled(data: string): Identity {
  const identity = readIdentity(data, secretFiles)
  if (!identity)
    throw new Error(
      `${data} contains no agent: choose the agent's folder with --data${nearby(data, 'edge', 'agent.json')}`,
    )
  return identity
}

/**
 * Prints the credential for programs on the agent's machine. With --renew, the command first replaces the credential.
 */
export async function runCredential({ data, renew, json }: Values<typeof EDGE_CREDENTIAL_OPTIONS>): Promise<void> {
  assertEnrolled(data)
  const file = credentialFile(data, realPlatform().random)
  print(json, 'credential', renew ? file.renew() : file.ensure())
}

/** The name of a till in the form in which its sales have it. */
function readTillId(till: string): string {
  const { success, data, error } = SaleNames.tillId.safeParse(till)
  if (success && data !== undefined) return data
  throw new WrongUsage([`--till ${error?.issues[0]?.message ?? 'is empty'}`])
}

/** Creates a credential for one named program. The ledger stores only its hash. */
export async function runPair({ data, name, may, till, json }: Values<typeof EDGE_PAIR_OPTIONS>): Promise<void> {
  const rights = rightsIn(may)
  if (till !== undefined && rights.length === 0)
    throw new WrongUsage([
      `--till needs --may: send --may ${TILL_RIGHTS[0]}, because a program without --may may do everything`,
    ])
  const tillId = till === undefined ? undefined : readTillId(till)
  const platform = realPlatform()
  const credential = newSecret('pair', platform.random)
  withPairings(data, (pairings) =>
    pairings.addProgram(hashSecret(credential), name, platform.clock.wall(), rights, tillId),
  )
  print(json, 'credential', credential)
}

function rightsIn(may: string | undefined): TillRight[] {
  const named = may?.split(',').map((right) => right.trim()) ?? []
  const unknown = named.find((right) => !TILL_RIGHTS.some((known) => known === right))
  if (unknown !== undefined)
    throw new WrongUsage([`--may: ${unknown} is no right: send ${TILL_RIGHTS.join(', ')}, or both`])
  return TILL_RIGHTS.filter((right) => named.includes(right))
}

/** Creates and prints a one-time link that pairs a browser. */
export async function runLink({ data, host, json }: Values<typeof EDGE_LINK_OPTIONS>): Promise<void> {
  const { random, clock } = realPlatform()
  const code = newSecret('link', random)
  const url = withPairings(data, (pairings, urls) => {
    const chosen = chooseUrl(urls, host)
    pairings.addLink(hashSecret(code), clock.wall())
    return chosen
  })
  print(json, 'pairingUrl', pairingUrl(url, code))
}

/** Address of the agent with this host. Default: the address that the agent stored first. */
function chooseUrl(urls: readonly string[], host: string | undefined): string {
  if (host === undefined) return urls[0] ?? DEFAULT_URL
  const named = urls.find((url) => new URL(url).host === host || new URL(url).hostname === host)
  if (named === undefined)
    throw new WrongUsage([
      `--host must be one of ${urls.map((url) => new URL(url).host).join(', ')}: add other names to hosts in the agent’s configuration and restart the agent`,
    ])
  return named
}

/** Lists the paired programs and browsers, or revokes one. */
export async function runPairings({ data, revoke, json }: Values<typeof EDGE_PAIRINGS_OPTIONS>): Promise<void> {
  if (revoke !== undefined) {
    const isRevoked = withPairings(data, (pairings) => pairings.revoke(revoke))
    if (!isRevoked) throw new WrongUsage([`--revoke: there is no pairing ${revoke}; untag edge pairings lists them`])
    process.stdout.write(json ? `${JSON.stringify({ revoked: revoke })}\n` : `revoked ${revoke}\n`)
    return
  }
  const list = withPairings(data, (pairings) => pairings.list())
  printTable(
    json,
    { pairings: list.map(toPairing) },
    {
      head: ['ID', 'KIND', 'NAME', 'PAIRED', 'LAST USED'],
      rows: list.map(({ id, kind, name, pairedMs, usedMs }) => [
        id,
        kind,
        name,
        `paired ${dayOf(pairedMs)}`,
        usedMs === null ? 'never used' : `last used ${dayOf(usedMs)}`,
      ]),
      empty: 'no program has a named credential, and no browser is paired',
    },
  )
}

/** Prints only the value, or a JSON object with it. */
function print(json: boolean, name: string, value: string): void {
  process.stdout.write(json ? `${JSON.stringify({ [name]: value })}\n` : `${value}\n`)
}

function toPairing({ id, kind, name, pairedMs, usedMs, rights, tillId }: Pairing) {
  const lastUsedAt = usedMs === null ? {} : { lastUsedAt: new Date(usedMs).toISOString() }
  const may = rights.length > 0 ? { may: rights } : {}
  return {
    id,
    kind,
    name,
    pairedAt: new Date(pairedMs).toISOString(),
    ...may,
    ...(tillId !== undefined && { tillId }),
    ...lastUsedAt,
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function withPairings<T>(data: string, work: (pairings: Pairings, urls: readonly string[]) => T): T {
  assertEnrolled(data)
  const db = openLedgerFile(join(data, 'ledger.db'))
  try {
    const urls = JSON.parse(openMetadata(db).get(LOCAL_URLS) ?? JSON.stringify([DEFAULT_URL])) as string[]
    return db.transaction(() => work(openPairings(db), urls)).immediate()
  } finally {
    db.close()
  }
}

/** Requests a key rotation. The agent rotates its key as soon as it runs and reaches the cloud. */
export async function runRotateKey({ data, json }: Values<typeof EDGE_ROTATE_KEY_OPTIONS>): Promise<void> {
  const identity = assertEnrolled(data)
  const db = openLedgerFile(join(data, 'ledger.db'))
  openMetadata(db).set(ROTATION_REQUESTED, '1')
  db.close()
  const { agentId } = identity
  process.stdout.write(
    json
      ? `${JSON.stringify({ agentId })}\n`
      : `${agentId} will replace its key as soon as it runs and reaches the cloud\n`,
  )
}
