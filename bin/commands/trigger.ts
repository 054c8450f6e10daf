import { apiClient } from '../api-client.ts'
import type { Values } from '../options.ts'
import type { TRIGGER_OPTIONS } from '../settings.ts'

/** Sends a test event and prints its id; made-up data, so other events than webhook.test need a test key. */
export async function runTrigger(event: string, settings: Values<typeof TRIGGER_OPTIONS>): Promise<void> {
  const { webhookId, storeId } = settings
  const { body } = await apiClient(settings).call('sendTestWebhook', {
    event,
    ...(webhookId !== undefined && { webhookId }),
    ...(storeId !== undefined && { storeId }),
  })
  process.stdout.write(`${event} ${String(body['eventId'])}\n`)
}
