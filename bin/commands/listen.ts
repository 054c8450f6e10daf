import { printLine, printNote, printReady } from '../../host/output.ts'
import { newSecret, signatureHeaders } from '../../cloud/platform/webhooks/secret.ts'
import { apiClient, ApiRefusal, type ApiClient } from '../api-client.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { listenLines } from '../../host/ready-lines.ts'
import type { LISTEN_OPTIONS } from '../../host/settings/tools.ts'
import { stopOnSignals } from '../../host/shutdown.ts'

const ASK_EVERY_MS = 1_000
const ACKNOWLEDGE_WITHIN_MS = 10_000

interface Envelope {
  id: string
  event: string
  storeId?: string
}

interface Webhook {
  events: string[]
}

const PROTECTION_NOTE =
  'Events protection.* come only while a webhook is registered for them, such as for alarms: docs/guides/webhooks.md'

/** True if the person wants events of protection, and the cloud stores none. */
function lacksProtection(wanted: readonly string[], webhooks: readonly Webhook[]): boolean {
  const isProtection = (event: string) => event === '*' || event.startsWith('protection.')
  return wanted.some(isProtection) && !webhooks.some(({ events }) => events.some(isProtection))
}

/** Polls the account's new events and posts each to the receiver, signed like a webhook. */
export async function runListen(settings: Values<typeof LISTEN_OPTIONS>): Promise<void> {
  const { forwardTo, events, storeId } = settings
  const api = apiClient(settings)
  if (forwardTo === undefined) throw new WrongUsage(['--forward-to URL is needed: your receiver'])
  const secret = settings.secret ?? newSecret(realPlatform().random)
  // This call checks the key and the address, and returns the time of the server.
  const { serverMs, body } = await api.call('fetchWebhooks', {})
  const filter = { events: events.split(',').map((e) => e.trim()), ...(storeId !== undefined && { storeId }) }
  if (lacksProtection(filter.events, body['webhooks'] as Webhook[])) printNote(PROTECTION_NOTE)
  let stopped = false
  stopOnSignals(async () => void (stopped = true))
  printReady({ forwardTo, secret }, listenLines(forwardTo, secret, settings.events))
  let position: { since: string } | { cursor: string } = { since: new Date(serverMs).toISOString() }
  while (!stopped) {
    const { events: found, nextCursor } = await fetchEvents(api, { ...filter, ...position, limit: 100 })
    for (const envelope of found) {
      await forward(envelope, forwardTo, secret)
      position = { cursor: envelope.id }
    }
    // A page without events may have looked at events of other kinds only.
    if (nextCursor !== undefined) position = { cursor: nextCursor }
    else if (found.length === 0) await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
  }
}

/** Fetches the next events. Returns none while the API cannot be reached. */
async function fetchEvents(api: ApiClient, body: object): Promise<{ events: Envelope[]; nextCursor?: string }> {
  try {
    return (await api.call('fetchWebhookEvents', body)).body as unknown as { events: Envelope[]; nextCursor?: string }
  } catch (error) {
    if (error instanceof ApiRefusal && error.status < 500 && error.status !== 429) throw error
    printNote(`${error instanceof Error ? error.message : String(error)}; trying again`)
    return { events: [] }
  }
}

async function forward({ storeId: _storeId, ...envelope }: Envelope, url: string, secret: string): Promise<void> {
  const body = JSON.stringify(envelope)
  const began = performance.now()
  const headers = {
    'content-type': 'application/json',
    ...signatureHeaders({ id: envelope.id, sentS: Math.floor(Date.now() / 1_000), body }, { current: secret }),
  }
  const result = await fetch(url, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(ACKNOWLEDGE_WITHIN_MS),
  }).then(
    async (response) => {
      await response.body?.cancel()
      return String(response.status)
    },
    (error: unknown) =>
      `no answer: ${error instanceof Error ? ((error.cause as Error | undefined)?.message ?? error.message) : String(error)}`,
  )
  if (result === '400' || result === '401')
    printNote(`your receiver refused the event: does it check signatures with the secret above?`)
  printLine(`${envelope.event} ${envelope.id} → ${result} (${Math.round(performance.now() - began)} ms)`)
}
