import { apiClient } from '../api-client.ts'
import type { Values } from '../options.ts'
import type { TRIGGER_OPTIONS } from '../settings.ts'

/** Sends a test event with invented data and prints its id. Events other than `webhook.test` need a test key. */
export async function runTrigger(event: string, settings: Values<typeof TRIGGER_OPTIONS>): Promise<void> {
  const { webhookId, storeId, json } = settings
  const { body } = await apiClient(settings).call('sendTestWebhook', {
    event,
    ...(webhookId !== undefined && { webhookId }),
    ...(storeId !== undefined && { storeId }),
  })
  const eventId = String(body['eventId'])
  process.stdout.write(json ? `${JSON.stringify({ event, eventId })}\n` : `${event} ${eventId}\n`)
}
