import { ALARM_DISPOSITIONS } from '../../../policy/vocabulary.ts'
import type { Texts } from '../texts/texts.ts'

/** Dialog in which an operator says what an alarm was. */
export function AlarmDialog({ texts }: { texts: Texts }) {
  const { steps } = texts.gate
  return (
    <dialog data-slot="alarm-dialog" aria-labelledby="alarm-title">
      <div class="dialog-head">
        <h2 id="alarm-title" data-slot="alarm-title" />
        <button type="button" data-slot="alarm-close">
          {texts.close}
        </button>
      </div>
      <p class="alarm-item" data-slot="alarm-item" />
      <p class="alert" role="alert" data-slot="alarm-error" />
      <div class="steps-of-alarm">
        <button type="button" class="main" data-step="acknowledged">
          {steps.acknowledged.long}
        </button>
        {ALARM_DISPOSITIONS.map((step) => (
          <button type="button" data-step={step}>
            {steps[step].long}
          </button>
        ))}
      </div>
    </dialog>
  )
}
