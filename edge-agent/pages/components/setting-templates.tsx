import { settingFields, type SettingField } from '../../setup/settings-form.ts'
import { deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import { SETTING_LABELS, VALUE_LABELS } from '../texts/setting-labels.ts'
import type { Texts } from '../texts/texts.ts'

/** Attributes of a field for codes and settings, which no browser should change or remember. */
export const PLAIN = { autocomplete: 'off', autocapitalize: 'none', spellcheck: false } as const

/** The fields of each driver. The page's script copies those of the chosen driver into a form. */
export function SettingTemplates({
  texts,
  devices,
  hasFireAlarm,
}: {
  texts: Texts
  devices: readonly PageDevice[]
  /** True if a device has an emergency input. */
  hasFireAlarm: boolean
}) {
  return (
    <>
      {[...settingFields()].map(([driver, fields]) => (
        <template data-driver={driver}>
          {fields.map((field) => (
            <Setting texts={texts} field={field} devices={devices} isRequired={isRequired(field, hasFireAlarm)} />
          ))}
        </template>
      ))}
    </>
  )
}

/** While a device has an emergency input, each device that releases says what it does in an emergency (config.ts). */
function isRequired({ path, needed }: SettingField, hasFireAlarm: boolean): boolean {
  return needed === 'always' || (hasFireAlarm && path === 'opensInEmergency')
}

interface SettingProps {
  texts: Texts
  field: SettingField
  devices: readonly PageDevice[]
  isRequired: boolean
}

function Setting({ texts, field, devices, isRequired }: SettingProps) {
  const { path, kind, needed, min, max } = field
  const mark = isRequired ? texts.setup.required : undefined
  const label = SETTING_LABELS[path]?.[texts.language] ?? path
  return (
    <div
      class="field"
      data-path={path}
      data-kind={kind}
      data-needed={needed}
      data-label={label}
      data-min={min}
      data-max={max}
    >
      <label>
        {label}
        <span class="ids">{[mark, hintOf(field, texts)].filter(Boolean).join(', ')}</span>
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

/** Allowed numbers. */
function rangeOf({ min, max }: SettingField, { setup }: Texts): string | undefined {
  return min !== undefined && max !== undefined ? setup.range(String(min), String(max)) : undefined
}

/** Allowed numbers, and the value that counts if the field is empty. */
function hintOf(field: SettingField, texts: Texts): string {
  const { setup } = texts
  const { preset } = field
  const range = rangeOf(field, texts)
  const otherwise = preset === undefined ? undefined : setup.otherwise(valueText(preset, texts))
  return [range, otherwise].filter((part) => part !== undefined).join(', ')
}

function valueText(value: string | number | boolean, { setup, language }: Texts): string {
  if (typeof value === 'boolean') return value ? setup.yes : setup.no
  return VALUE_LABELS[value]?.[language] ?? String(value)
}
