import type { AlarmStep } from '../../../policy/vocabulary.ts'
import type { PageAlarmState } from '../model/wire.ts'
import { handleAlarm } from './api.ts'
import { slot, write } from './elements.ts'
import type { ChosenAlarm } from './gate-lines.ts'
import type { PageContext } from './page-context.ts'
import type { Operator } from './operator.ts'
import type { SignIn } from './sign-in.ts'

export interface AlarmDialogParts {
  context: PageContext
  operator: Operator
  signIn: SignIn
  onHandled(alarmId: string, state: PageAlarmState): void
}

/** Prepares the dialog for alarms. The result opens it for an alarm, after a sign-in if nobody is signed in. */
export function openAlarmDialog({ context, operator, signIn, onHandled }: AlarmDialogParts): (a: ChosenAlarm) => void {
  const { deviceId, texts } = context
  const dialog = slot<HTMLDialogElement>('alarm-dialog')
  let chosen: ChosenAlarm | undefined

  async function send(step: AlarmStep): Promise<void> {
    const alarm = chosen
    if (!alarm) return
    const answer = await handleAlarm(deviceId, alarm.alarmId, step)
    if (answer.ok) {
      onHandled(alarm.alarmId, answer.body)
      return dialog.close()
    }
    if (answer.code === 'operator_required') {
      operator.setName(null)
      dialog.close()
      return signIn.open(() => show(alarm))
    }
    write('alarm-error', answer.status === 404 ? texts.gate.tooLate : texts.requestFailed[answer.fault].what)
  }

  function show(alarm: ChosenAlarm): void {
    chosen = alarm
    write('alarm-title', texts.gate.handleTitle(alarm.time))
    write('alarm-item', alarm.item)
    write('alarm-error', '')
    dialog.showModal()
  }

  for (const button of dialog.querySelectorAll<HTMLElement>('[data-step]'))
    button.addEventListener('click', () => void send(button.dataset['step'] as AlarmStep))
  slot('alarm-close').addEventListener('click', () => dialog.close())

  return (alarm) => (operator.isSignedIn ? show(alarm) : signIn.open(() => show(alarm)))
}
