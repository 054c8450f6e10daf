import type { Child } from 'hono/jsx'
import type { FormState } from '../frame/form.ts'
import { Icon } from './icons.tsx'

/** Properties of all fields. `id` must be unique on the page; by default it is the name. */
interface FieldProps {
  form: FormState
  name: string
  label: string
  /** True if only screen readers need the label, for instance in a table. */
  isLabelSpoken?: boolean
  hint?: string
  /** Value before the user changed it. */
  value?: string | undefined
  required?: boolean
  id?: string
}

/** Label, hint and error of a field. */
function Labelled({
  field: { form, name, label, isLabelSpoken = false, hint, id = name },
  children,
}: {
  field: FieldProps
  children?: Child
}) {
  const error = form.errors[name]
  return (
    <div class="field">
      <label for={id} class={isLabelSpoken ? 'spoken' : undefined}>
        {label}
      </label>
      {hint === undefined ? null : (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {children}
      {error === undefined ? null : <FieldError id={id} error={error} />}
    </div>
  )
}

/** What is wrong with a field, for a group of fields that `aria-describedby` connects with it. */
export function FieldError({ id, error }: { id: string; error: string }) {
  return (
    <span class="field-error" id={`${id}-error`}>
      <Icon name="warning" size={16} />
      {error}
    </span>
  )
}

/** Attributes that connect an input with its label, hint and error. */
function inputProps({ form, name, hint, value, required = false, id = name }: FieldProps) {
  const isWrong = form.errors[name] !== undefined
  const described = [hint === undefined ? '' : `${id}-hint`, isWrong ? `${id}-error` : ''].join(' ').trim()
  return {
    id,
    name,
    required,
    value: form.values[name] ?? value,
    class: 'input',
    ...(isWrong && { 'aria-invalid': 'true' as const, ...(form.id !== undefined && { autofocus: true }) }),
    ...(described !== '' && { 'aria-describedby': described }),
  }
}

/** A line of text. */
export function TextField({
  type = 'text',
  inputmode,
  autocomplete = 'off',
  maxlength,
  ...field
}: FieldProps & {
  type?: 'text' | 'email' | 'password' | 'search' | 'date' | 'time' | 'number'
  inputmode?: 'numeric' | 'decimal'
  autocomplete?: string
  maxlength?: number
}) {
  return (
    <Labelled field={field}>
      <input
        {...inputProps(field)}
        type={type}
        autocomplete={autocomplete}
        {...(inputmode && { inputmode })}
        {...(maxlength !== undefined && { maxlength })}
      />
    </Labelled>
  )
}

/** A file, for instance of `accept=".csv,.xlsx"`. Its form needs `upload`. */
export function FileInput({ accept, ...field }: FieldProps & { accept: string }) {
  const { value: _, ...props } = inputProps(field)
  return (
    <Labelled field={field}>
      <input {...props} type="file" accept={accept} />
    </Labelled>
  )
}

/** Several lines of text. */
export function TextArea({ rows = 3, maxlength, ...field }: FieldProps & { rows?: number; maxlength?: number }) {
  const { value, ...props } = inputProps(field)
  return (
    <Labelled field={field}>
      <textarea {...props} rows={rows} {...(maxlength !== undefined && { maxlength })}>
        {value}
      </textarea>
    </Labelled>
  )
}

interface Choice {
  readonly value: string
  readonly label: string
  readonly hint?: string
}

/** One of a list. */
export function Select({ choices, ...field }: FieldProps & { choices: readonly Choice[] }) {
  const { value, ...props } = inputProps(field)
  return (
    <Labelled field={field}>
      <select {...props}>
        {choices.map((choice) => (
          <option value={choice.value} selected={choice.value === value}>
            {choice.label}
          </option>
        ))}
      </select>
    </Labelled>
  )
}

/** One of a few, all visible: large areas for a thumb. */
export function Choices({ choices, ...field }: FieldProps & { choices: readonly Choice[] }) {
  const { form, name, label, hint, required = false, id = name } = field
  const chosen = form.values[name] ?? field.value
  const error = form.errors[name]
  return (
    <fieldset class="field" {...(error !== undefined && { 'aria-describedby': `${id}-error` })}>
      <legend>{label}</legend>
      {hint === undefined ? null : <span class="hint">{hint}</span>}
      <div class="choices">
        {choices.map((choice) => (
          <label class="choice">
            <input
              type="radio"
              name={name}
              value={choice.value}
              required={required}
              checked={choice.value === chosen}
            />
            <span>
              {choice.label}
              {choice.hint === undefined ? null : <small>{choice.hint}</small>}
            </span>
          </label>
        ))}
      </div>
      {error === undefined ? null : <FieldError id={id} error={error} />}
    </fieldset>
  )
}

/** Yes or no. */
export function Checkbox({ form, name, label, hint, value, required = false, id = name }: FieldProps) {
  const isChecked = form.id === undefined ? value !== undefined : form.values[name] !== undefined
  return (
    <div class="field">
      <label class="choice">
        <input id={id} type="checkbox" name={name} value="yes" checked={isChecked} required={required} />
        <span>
          {label}
          {hint === undefined ? null : <small>{hint}</small>}
        </span>
      </label>
    </div>
  )
}
