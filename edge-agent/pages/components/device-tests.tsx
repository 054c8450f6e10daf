import { PAGE_TESTED_OUTPUTS, WALK_SECONDS, type PageDevice } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { Technical } from './technical.tsx'

/** Buttons that test the outputs of a new device, and a walk test for gates. */
export function DeviceTests({ texts, device, hasOutputs }: { texts: Texts; device: PageDevice; hasOutputs: boolean }) {
  const { setup } = texts
  const { deviceId } = device
  const isGate = device.deviceType === 'exit_gate'
  if (!hasOutputs && !isGate) return null
  return (
    <div data-tests={deviceId} role="group" aria-label={`${setup.test}: ${device.name ?? deviceId}`}>
      {hasOutputs ? <p class="soft">{setup.testHint}</p> : null}
      <p class="row">
        {(hasOutputs ? PAGE_TESTED_OUTPUTS : []).map((output) => (
          <button type="button" data-test={output}>
            {setup.outputs[output]}
          </button>
        ))}
        {isGate ? (
          <button type="button" data-walk={String(WALK_SECONDS)}>
            {setup.walk}
          </button>
        ) : null}
      </p>
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </div>
  )
}
