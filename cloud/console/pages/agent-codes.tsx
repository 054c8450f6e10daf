import type { z } from 'zod'
import type { createEnrolmentCode } from '../../protection/agents/enrolment/enrol-operations.ts'
import type { createSetupCode } from '../../protection/devices/setup-codes.ts'
import { Card } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { QrCode } from '../components/qr-code.tsx'
import type { ViewContext } from '../frame/page.ts'

/** One-time codes of the page about agents and devices. Each is shown once, because the cloud stores only its hash. */

export type SetupCode = z.output<typeof createSetupCode.response>
export type EnrolmentCode = z.output<typeof createEnrolmentCode.response>

/** Form that makes an enrolment code. */
export function InstallAgent({ at }: { at: ViewContext }) {
  const t = at.texts.agents
  return (
    <Card title={t.install}>
      <ActionForm at={at} action="enrol">
        <p>{t.installText}</p>
        <TextField form={at.form} name="name" label={t.agentName} hint={t.agentNameHint} maxlength={120} />
        <div>
          <Submit main={false}>{t.makeEnrolmentCode}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** The enrolment code with the command that uses it. The QR code has the command, too. */
export function EnrolmentCard({ at, made }: { at: ViewContext; made: EnrolmentCode }) {
  const t = at.texts.agents
  const enrol = `untag edge enrol --cloud ${at.cloudUrl} --code ${made.code}`
  const data = '/var/lib/untag-edge'
  const service = `runuser -u untag-edge -- ${enrol} --data ${data}`
  return (
    <Card title={t.install}>
      <div class="print-badge">
        <div>
          <p class="command-code">
            <code>{made.code}</code>
          </p>
          <p>{t.enrolmentText(at.formats.clock(Date.parse(made.expiresAt)))}</p>
          <p class="small soft">{t.qrText}</p>
        </div>
        <QrCode text={enrol} label={t.qrLabel} />
      </div>
      <Command at={at} label={t.command} text={enrol} />
      <details>
        <summary>{t.asService}</summary>
        <Command at={at} label={t.serviceCommand} text={service} />
      </details>
      <a class="button" href={at.path}>
        {t.backToDevices}
      </a>
    </Card>
  )
}

function Command({ at, label, text }: { at: ViewContext; label: string; text: string }) {
  const t = at.texts.agents
  return (
    <div class="command">
      <p>{label}</p>
      <pre tabindex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" class="button needs-script" data-copy={text} data-done={t.copied}>
        {t.copy}
      </button>
    </div>
  )
}

/** Form that makes a set-up code. */
export function SetUp({ at }: { at: ViewContext }) {
  const t = at.texts.agents
  return (
    <Card title={t.setup}>
      <ActionForm at={at} action="setup">
        <p>{t.setupText}</p>
        <div>
          <Submit main={false}>{t.makeCode}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** The set-up code, which a person types. */
export function SetupCodeCard({ at, made }: { at: ViewContext; made: SetupCode }) {
  const t = at.texts.agents
  return (
    <Card title={t.setup}>
      <p class="big-code">{made.code}</p>
      <p>{t.codeText(at.formats.clock(Date.parse(made.expiresAt)))}</p>
      <a class="button" href={at.path}>
        {t.backToDevices}
      </a>
    </Card>
  )
}
