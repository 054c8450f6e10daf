import { DEVICE_TYPES, type DeviceType } from '../../../policy/vocabulary.ts'
import { settingFields, type SettingField } from '../../setup/settings-form.ts'
import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import { DRIVER_LABELS, SETTING_LABELS } from '../texts/setting-labels.ts'
import type { Texts } from '../texts/texts.ts'
import { Technical } from './technical.tsx'

interface DeviceFormProps {
  texts: Texts
  /** Suggested entry of the configuration. */
  entry: Readonly<Record<string, unknown>>
  /** Suggested type of the device. */
  type: DeviceType
  isWritable: boolean
}

/** Attributes of a field for codes and settings, which no browser should change or remember. */
const PLAIN = { autocomplete: 'off', autocapitalize: 'none', spellcheck: false } as const

/**
 * Form that registers and adds a device. The page's script fills in the fields of its driver. If the agent has no
 * configuration file, shows only the entry, to copy.
 */
export function DeviceForm({ texts, entry, type, isWritable }: DeviceFormProps) {
  const { setup } = texts
  const text = Object.keys(entry).length === 0 ? '' : JSON.stringify(entry)
  if (!isWritable) {
    return (
      <pre data-entry tabindex={0} aria-label={setup.entry}>
        {text}
      </pre>
    )
  }
  return (
    <form data-write method="post" novalidate>
      <label>
        {setup.code}
        <input data-code maxlength={60} {...PLAIN} autocapitalize="characters" placeholder="K7QX-2M9T-4WZ1" />
      </label>
      <p class="soft">{setup.codeHint}</p>
      <div class="field" data-path="deviceId" data-kind="text" data-label={setup.deviceId}>
        <label>
          {setup.deviceId}
          <input {...PLAIN} maxlength={100} />
        </label>
      </div>
      <p class="soft">{setup.deviceIdHint}</p>
      <label>
        {setup.type}
        <select data-type>
          {DEVICE_TYPES.map((each) => (
            <option value={each} selected={each === type}>
              {texts.deviceTypes[each].name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {setup.name}
        <input data-name maxlength={120} autocomplete="off" />
      </label>
      <fieldset>
        <legend>{setup.settings}</legend>
        <label>
          {setup.driver}
          <select data-driver-choice>
            {[...settingFields().keys()].map((driver) => (
              <option value={driver} selected={entry['driver'] === driver}>
                {DRIVER_LABELS[driver][texts.language]}
              </option>
            ))}
          </select>
        </label>
        <div class="settings" data-settings />
        <details data-more>
          <summary>{setup.moreSettings}</summary>
          <div class="settings" data-more-settings />
        </details>
      </fieldset>
      <details>
        <summary>{setup.details}</summary>
        <label>
          {setup.entry}
          <textarea data-entry rows={8} maxlength={4_000} {...PLAIN}>
            {text}
          </textarea>
        </label>
        <p class="soft">{setup.detailsHint}</p>
      </details>
      <p class="row">
        <button type="submit">{setup.add}</button>
      </p>
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </form>
  )
}

/** The fields of each driver. The page's script copies those of the chosen driver into a form. */
export function SettingTemplates({ texts, devices }: { texts: Texts; devices: readonly PageDevice[] }) {
  return (
    <>
      {[...settingFields()].map(([driver, fields]) => (
        <template data-driver={driver}>
          {fields.map((field) => (
            <Setting texts={texts} field={field} devices={devices} />
          ))}
        </template>
      ))}
    </>
  )
}

function Setting({ texts, field, devices }: { texts: Texts; field: SettingField; devices: readonly PageDevice[] }) {
  const { path, kind, needed } = field
  const label = SETTING_LABELS[path]?.[texts.language] ?? path
  return (
    <div class="field" data-path={path} data-kind={kind} data-needed={needed} data-label={label}>
      <label>
        {label}
        <span class="ids">
          <code>{path}</code>
          {hintOf(field, texts)}
        </span>
        {kind === 'choice' || kind === 'device' ? (
          <select>
            <option value="">{texts.setup.notSet}</option>
            {(kind === 'device' ? devices.filter(({ feeds }) => feeds === null) : field.choices).map((choice) =>
              typeof choice === 'object' ? (
                <option
                  value={JSON.stringify(choice.deviceId)}
                >{`${deviceTitle(choice, texts)} (${choice.deviceId})`}</option>
              ) : (
                <option value={JSON.stringify(choice)}>{valueText(choice, texts)}</option>
              ),
            )}
          </select>
        ) : (
          <input {...PLAIN} maxlength={300} inputmode={kind === 'number' ? 'decimal' : undefined} />
        )}
      </label>
    </div>
  )
}

/** Allowed numbers, and the value that counts if the field is empty. */
function hintOf({ min, max, preset }: SettingField, texts: Texts): string {
  const { setup } = texts
  const range = min !== undefined && max !== undefined ? `, ${setup.range(String(min), String(max))}` : ''
  return `${range}${preset === undefined ? '' : `, ${setup.otherwise(valueText(preset, texts))}`}`
}

function valueText(value: string | number | boolean, { setup }: Texts): string {
  if (typeof value === 'boolean') return value ? setup.yes : setup.no
  return String(value)
}
