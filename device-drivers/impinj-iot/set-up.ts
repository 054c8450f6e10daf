import { IMPINJ_PATHS, gpiRequest, gpoRequest, inventoryRequest, presetPath } from './protocol/requests.ts'
import { objectOf } from '../kit/protocol/tag-sighting.ts'
import { utcUsOf } from '../kit/protocol/timestamps.ts'
import { webHost } from '../transports/link-settings.ts'
import { setUpEnded } from '../kit/device.ts'
import type { DeviceIdentity } from '../kit/device.ts'
import type { HttpAnswer } from '../kit/http/conversation.ts'
import { jsonOf, refusalDetail } from '../kit/http/rest-client.ts'
import type { RestClient, RestRequest } from '../kit/http/rest-client.ts'
import type { ReaderClock } from '../llrp/reader-clock.ts'
import { antennasOf, inputsOf } from './settings.ts'
import type { ImpinjIotSettings } from './settings.ts'

export interface SetUpOptions {
  readonly rest: RestClient
  readonly settings: ImpinjIotSettings
  readonly clock: ReaderClock
  readonly signal: AbortSignal
  /** The outputs with their desired states. */
  desiredOutputs(): ReadonlyMap<number, boolean>
}

function setUpError(what: string, answer: HttpAnswer, settings: ImpinjIotSettings): Error {
  if (answer.kind === 'answered' && (answer.status === 401 || answer.status === 403)) {
    return new Error(`the reader refuses user "${settings.user}" (${answer.status}); check user and password`)
  }
  if (answer.kind === 'answered' && answer.status === 404 && what === 'its description') {
    return new Error('there is no Impinj IoT device interface; choose it as the RFID interface on the reader')
  }
  if (answer.kind === 'answered' && answer.status === 404 && what === 'its inputs') {
    return new Error(
      'this firmware has no inputs (GPI) on the IoT device interface: update the reader, or take passageInput, inputs, emergency and readWhile away',
    )
  }
  return new Error(
    `${what}: the reader ${answer.kind === 'answered' ? refusalDetail(answer) : `gave no answer (${answer.detail})`}`,
  )
}

/** Keepalive interval of firmware whose interval cannot be set (OpenAPI document 1.6.0). */
const FIXED_KEEPALIVE_SECONDS = 30

const START_WITHIN_MS = 10_000

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, 100) : undefined

/**
 * Configures a connected reader: reads its identity and clock, writes its outputs, then restarts the inventory. A
 * running inventory has unknown settings. Rejects with an error that names the fix.
 */
export async function setUpReader({
  rest,
  settings,
  clock,
  signal,
  desiredOutputs,
}: SetUpOptions): Promise<{ identity: DeviceIdentity; keepaliveSeconds: number }> {
  async function requestOrThrow(
    what: string,
    request: RestRequest,
    alsoGood: readonly number[] = [],
  ): Promise<Record<string, unknown>> {
    if (signal.aborted) throw setUpEnded(what, signal)
    const answer = await rest.request({ ...request, signal })
    const isGood =
      answer.kind === 'answered' && ((answer.status >= 200 && answer.status < 300) || alsoGood.includes(answer.status))
    if (!isGood) throw setUpError(what, answer, settings)
    return objectOf(jsonOf(answer)) ?? {}
  }

  const system = await requestOrThrow('its description', { method: 'GET', path: IMPINJ_PATHS.system })
  const image = await requestOrThrow('its firmware', { method: 'GET', path: IMPINJ_PATHS.image }, [404])
  const status = await requestOrThrow('its status', { method: 'GET', path: IMPINJ_PATHS.status })
  const utcUs = utcUsOf(status['time'])
  if (utcUs !== null) clock.set({ utcUs })
  const outputs = desiredOutputs()
  if (outputs.size > 0)
    await requestOrThrow('its outputs', { method: 'PUT', path: IMPINJ_PATHS.gpos, body: gpoRequest(outputs) })

  const inputs = inputsOf(settings)
  if (inputs.length > 0) {
    const gpi = gpiRequest(await requestOrThrow('its inputs', { method: 'GET', path: IMPINJ_PATHS.gpis }), inputs)
    if ('missing' in gpi)
      throw new Error(`there is no input (GPI) ${gpi.missing}; check the settings of ${settings.deviceId}`)
    await requestOrThrow('its inputs', { method: 'PUT', path: IMPINJ_PATHS.gpis, body: gpi.body })
  }
  const stream = await requestOrThrow(
    'its stream settings',
    { method: 'GET', path: IMPINJ_PATHS.streamSettings },
    [404],
  )
  // Firmware without these settings has no such field, and a fixed interval.
  const hasKeepaliveSetting = 'keepAliveIntervalSeconds' in stream
  if (hasKeepaliveSetting && stream['keepAliveIntervalSeconds'] !== settings.keepaliveSeconds) {
    await requestOrThrow('its stream settings', {
      method: 'PUT',
      path: IMPINJ_PATHS.streamSettings,
      body: { ...stream, keepAliveIntervalSeconds: settings.keepaliveSeconds },
    })
  }
  // Readers take seconds to stop and start an inventory.
  const timeoutMs = Math.max(START_WITHIN_MS, settings.requestTimeoutMs)
  // Status 409 means that nothing was running.
  await requestOrThrow('stopping what it does', { method: 'POST', path: IMPINJ_PATHS.stop, timeoutMs }, [409])
  const { preset } = settings
  if (preset === undefined)
    await requestOrThrow('starting to read', {
      method: 'POST',
      path: IMPINJ_PATHS.start,
      timeoutMs,
      body: inventoryRequest({ ...settings, antennas: antennasOf(settings), readWhile: settings.readWhile?.gpi }),
    })
  else
    await requestOrThrow(`starting the preset ${preset}`, {
      method: 'POST',
      path: presetPath(preset),
      body: {},
      timeoutMs,
    })

  const model = textOf(system['productModel']) ?? textOf(system['productDescription']) ?? 'reader'
  const serialNumber = textOf(system['serialNumber']) ?? textOf(status['serialNumber'])
  const firmwareVersion = textOf(image['primaryFirmware'])
  const identity: DeviceIdentity = {
    description: `Impinj ${model} at ${webHost(settings.link)}`,
    ...(serialNumber === undefined ? {} : { serialNumber }),
    ...(firmwareVersion === undefined ? {} : { firmwareVersion }),
  }
  return { identity, keepaliveSeconds: hasKeepaliveSetting ? settings.keepaliveSeconds : FIXED_KEEPALIVE_SECONDS }
}
