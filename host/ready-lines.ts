import { namedLines } from './output.ts'

/** What commands that serve print in a terminal when they are ready. Programs read the line `ready {…}` instead. */

/** Addresses and next steps of a cloud that is ready. */
export function cloudLines(
  {
    baseUrl,
    consoleUrl,
    mqttUrl,
    metricsUrl,
  }: { baseUrl: string; consoleUrl: string; mqttUrl: string; metricsUrl?: string },
  { data, databaseUrl }: { data: string; databaseUrl: string | undefined },
): string[] {
  const { origin } = new URL(baseUrl)
  // The address of a database may contain a password, so that it is not shown.
  const place = databaseUrl === undefined ? `--data ${data}` : '--database-url URL'
  return [
    'The cloud runs.',
    ...namedLines([
      ['API', baseUrl],
      ['Console', consoleUrl],
      ['Reference', `${origin}/docs`],
      ['MQTT broker', mqttUrl],
      ...(metricsUrl === undefined ? [] : [['Metrics', metricsUrl] as const]),
    ]),
    `Create an API key:       untag keys create ${place} --account NAME`,
    `Invite to the console:   untag users invite ${place} --account NAME --email ADDRESS --role owner`,
    'Stop it with Ctrl-C.',
  ]
}

/** Addresses and next steps of an agent that is ready. */
export function edgeLines(
  { url, agentId, storeId }: { url: string; agentId: string; storeId: string },
  data: string,
): string[] {
  return [
    `Agent ${agentId} of store ${storeId} runs.`,
    ...namedLines([
      ['Staff station', `${url}/station`],
      ['Exit gate', `${url}/gate`],
      ['Set-up', `${url}/setup`],
      ['Status', `${url}/readyz`],
    ]),
    `Pair a browser:   untag edge link --data ${data}`,
    `Pair a program:   untag edge pair --data ${data} --name NAME`,
    'Stop it with Ctrl-C.',
  ]
}

/** What `listen` does, with the secret that the receiver needs. */
export function listenLines(forwardTo: string, secret: string, events: string): string[] {
  return [
    `Forwards ${events === '*' ? 'all events' : events} to ${forwardTo}`,
    'Give your receiver the secret that signs them:',
    `  export WEBHOOK_SECRET=${secret}`,
    'Send a test event from another terminal: untag trigger checkout.completed',
    'Stop it with Ctrl-C.',
    '',
  ]
}
