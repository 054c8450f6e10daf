import { EVENT_TYPES } from '../../cloud/platform/webhooks/event-types.ts'
import { spellingHint } from '../../policy/fold-text.ts'
import { apiClient } from '../api-client.ts'
import { describeOptions, WrongUsage, type Values } from '../../host/options.ts'
import { printNote } from '../../host/output.ts'
import { TRIGGER_OPTIONS } from '../../host/settings/tools.ts'

const NEXT = 'start it with untag listen --forward-to URL and repeat this command, or register a webhook'

/** Sends a test event with invented data and prints its id, with the next step if no webhook receives it. Events other than `webhook.test` need a test key. */
export async function runTrigger(event: string, settings: Values<typeof TRIGGER_OPTIONS>): Promise<void> {
  if (!EVENT_TYPES.has(event)) {
    const near = spellingHint(event, EVENT_TYPES.keys())
    throw new WrongUsage([
      `there is no event ${event}${near === '' ? '; untag trigger --help lists all events' : near}`,
    ])
  }
  const { webhookId, storeId, json } = settings
  const { body } = await apiClient(settings).call('sendTestWebhook', {
    event,
    ...(webhookId !== undefined && { webhookId }),
    ...(storeId !== undefined && { storeId }),
  })
  const eventId = String(body['eventId'])
  const { webhooks } = body
  const next = webhooks === 0 ? `no webhook receives ${event}, only a running untag listen: ${NEXT}` : undefined
  if (json) process.stdout.write(`${JSON.stringify({ event, eventId, webhooks, next })}\n`)
  else process.stdout.write(`${event} ${eventId}\n`)
  if (!json && next !== undefined) printNote(next)
}

/** Help with all events. */
export function triggerHelp(): string {
  const width = Math.max(...[...EVENT_TYPES.keys()].map((name) => name.length))
  const events = [...EVENT_TYPES.values()].map(({ name, when }) => `  ${name.padEnd(width)}  ${when}`)
  return [
    'untag trigger EVENT: Send a test event to the webhooks registered for it, and to untag listen',
    '',
    describeOptions(TRIGGER_OPTIONS),
    '',
    'Events:',
    ...events,
    '',
    'Example: untag trigger checkout.completed',
    '',
  ].join('\n')
}
