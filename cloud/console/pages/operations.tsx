import { resolveReference, schemaWriter, type JsonSchema } from '../../../policy/json-schema.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import type { Operation } from '../../platform/operations/operation.ts'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { Json } from '../components/code.tsx'
import { Select, TextArea, TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { FilterBar, List, Results } from '../components/table.tsx'
import { jsonOf, NO_FORM, type FormFields } from '../frame/form.ts'
import { GERMAN_AREAS, GERMAN_WORDS } from '../texts/operation-words.ts'
import { page, type ConsolePage, type PageContext, type ViewContext } from '../frame/page.ts'

/** Texts of a field that are longer than this get several lines. */
const LINE = 200

const SEARCH_LENGTH = 100
/** Characters of an answer that a page shows. */
const ANSWER_SHOWN = 100_000

/** How the form shows a field, and how its text becomes a value. */
type FieldKind = 'text' | 'date' | 'number' | 'boolean' | 'choice' | 'json'

interface OperationField {
  readonly name: string
  readonly kind: FieldKind
  readonly schema: JsonSchema
  readonly isRequired: boolean
}

/** A field of the form never has the name of one of the frame, nor a name whose value the frame does not keep. */
const inputName = (name: string) => `f.${name}`

/** The fields of an operation's request, in its order. */
export function fieldsOfOperation({ request }: Pick<Operation, 'request'>): OperationField[] {
  const { components, write } = schemaWriter()
  const whole = resolveReference(write(request, 'input'), components)
  return Object.entries(whole.properties ?? {}).map(([name, field]) => {
    const schema = resolveReference(field, components)
    return { name, kind: kindOf(schema), schema, isRequired: whole.required?.includes(name) === true }
  })
}

function kindOf({ type, format, enum: values, anyOf, oneOf }: JsonSchema): FieldKind {
  if (values?.every((value) => typeof value === 'string')) return 'choice'
  if (anyOf || oneOf) return 'json'
  // The browser shows a date in the format of its language, and sends the one of the API.
  if (type === 'string') return format === 'date' ? 'date' : 'text'
  if (type === 'number' || type === 'integer') return 'number'
  return type === 'boolean' ? 'boolean' : 'json'
}

/** True for operations that take only a file. */
function needsCommand({ multipart }: Operation): boolean {
  return multipart?.alsoJson === false
}

/** The value of a field. */
function valueOf(form: FormFields, { name, kind }: OperationField): unknown {
  const text = form.text(inputName(name))
  if (text === undefined) return undefined
  if (kind === 'number') return form.number(inputName(name))
  if (kind === 'boolean') return text === 'true'
  return kind === 'json' ? jsonOf(text) : text
}

/** What the search looks through: the words of the API, and in a German console also German ones. */
function searchText({ name, summary, area }: Operation, { language }: PageContext): string {
  const english = `${name.replaceAll(/[A-Z]/g, ' $&')} ${summary} ${area}`.toLowerCase()
  const german = GERMAN_WORDS.flatMap(([pattern, words]) => (pattern.test(english) ? words : []))
  const others = language === 'de' ? [GERMAN_AREAS[area] ?? '', ...german] : []
  return `${name} ${english} ${others.join(' ')}`.toLowerCase()
}

/** Pages of every operation of the table. A user sees those that the own role may call. */
export function operationPages(table: ReadonlyMap<string, Operation>): readonly ConsolePage[] {
  const callable = (at: PageContext) => [...table.values()].filter(({ roles }) => at.has(roles))
  const chosen = (at: PageContext) => callable(at).find(({ name }) => name === at.params['name'])

  const list = page<readonly Operation[]>({
    path: '/console/operations',
    roles: rolesFrom('viewer'),
    scope: 'account',
    navigation: { group: 'developers', icon: 'code' },
    title: (texts) => texts.developers.operations.title,
    lead: (at) => at.texts.developers.operations.lead,
    load(at) {
      const words = (at.query.get('q') ?? '').slice(0, SEARCH_LENGTH).toLowerCase().split(/\s+/)
      const found = callable(at).filter((operation) => {
        const text = searchText(operation, at)
        return words.every((word) => text.includes(word))
      })
      return Promise.resolve(found)
    },
    view: (at) => <OperationList at={at} />,
  })

  const one = page<Operation | undefined>({
    path: '/console/operations/:name',
    roles: rolesFrom('viewer'),
    scope: 'account',
    title: (texts) => texts.developers.operations.title,
    lead: (at) => at.data?.name,
    actions: {
      run: {
        operation(at) {
          const operation = chosen(at)
          if (!operation || needsCommand(operation)) throw notFound('operation with a form')
          return operation
        },
        input(form, at) {
          const operation = chosen(at)
          const fields = operation ? fieldsOfOperation(operation) : []
          return Object.fromEntries(fields.map((field) => [field.name, valueOf(form, field)]))
        },
        done: (texts) => texts.developers.operations.done,
        show: (result, at) => <Answer at={at} result={result} />,
      },
    },
    load: (at) => Promise.resolve(chosen(at)),
    view: (at) => <OneOperation at={at} />,
  })
  return [list, one]
}

function OperationList({ at }: { at: ViewContext<readonly Operation[]> }) {
  const t = at.texts.developers.operations
  const areas = [...new Set(at.data.map(({ area }) => area))]
  return (
    <div class="stack wide">
      <FilterBar at={at}>
        <TextField
          form={NO_FORM}
          name="q"
          type="search"
          label={t.find}
          value={at.query.get('q') ?? ''}
          maxlength={SEARCH_LENGTH}
        />
      </FilterBar>
      <Results>
        {at.data.length === 0 ? (
          <Card>
            <EmptyState icon="code" title={t.nothing} />
          </Card>
        ) : null}
        {areas.map((area) => (
          <Card title={at.language === 'de' ? (GERMAN_AREAS[area] ?? area) : area} flush>
            <List>
              {at.data
                .filter((operation) => operation.area === area)
                .map(({ name, summary, changes }) => (
                  <li>
                    <div>
                      <a href={`${at.path}/${name}`}>
                        <strong>{name}</strong>
                      </a>
                      <span class="sub" lang="en">
                        {summary}
                      </span>
                    </div>
                    <Badge tone={changes ? 'warn' : 'plain'}>{changes ? t.changes : t.reads}</Badge>
                  </li>
                ))}
            </List>
          </Card>
        ))}
      </Results>
    </div>
  )
}

function OneOperation({ at }: { at: ViewContext<Operation | undefined> }) {
  const t = at.texts.developers.operations
  const operation = at.data
  const back = (
    <a class="button" href="/console/operations">
      {t.back}
    </a>
  )
  if (!operation)
    return (
      <Card>
        <EmptyState icon="info" title={t.unknown} />
        <div class="empty">{back}</div>
      </Card>
    )
  const { name, summary, description, changes } = operation
  const fields = fieldsOfOperation(operation)
  return (
    <div class="stack wide">
      <Card title={name} aside={<Badge tone={changes ? 'warn' : 'plain'}>{changes ? t.changes : t.reads}</Badge>}>
        <div class="stack">
          <div lang="en">
            <p>{summary}</p>
            {description === summary ? null : <p class="small soft">{description}</p>}
          </div>
          <p>
            <a href={`/docs#${name}`}>{t.reference}</a>
          </p>
          {needsCommand(operation) ? (
            <>
              <Notice title={t.notHere}>
                <code>untag api {name} --help</code>
              </Notice>
              <div>{back}</div>
            </>
          ) : (
            <ActionForm at={at} action="run" download={operation.stream !== undefined}>
              {fields.length === 0 ? <p>{t.noFields}</p> : null}
              {fields.map((field) => (
                <OperationInput at={at} field={field} example={operation.example[field.name]} />
              ))}
              {changes ? <p class="small soft">{t.changesText}</p> : null}
              <div class="form-foot">
                <Submit>{operation.stream ? t.download : t.run}</Submit>
                {back}
              </div>
            </ActionForm>
          )}
        </div>
      </Card>
    </div>
  )
}

function OperationInput({ at, field, example }: { at: ViewContext; field: OperationField; example: unknown }) {
  const t = at.texts.developers
  const { name, kind, schema, isRequired } = field
  const wrong = at.form.errors[name]
  const props = {
    form: wrong === undefined ? at.form : { ...at.form, errors: { [inputName(name)]: wrong } },
    name: inputName(name),
    label: isRequired ? name : t.optional(name),
    required: isRequired,
    value: name === 'storeId' ? at.store?.storeId : undefined,
    ...(schema.description !== undefined && { hint: schema.description }),
  }
  const none = { value: '', label: t.operations.unset }
  if (kind === 'choice')
    return (
      <Select
        {...props}
        choices={[
          ...(isRequired ? [] : [none]),
          ...(schema.enum as string[]).map((value) => ({ value, label: value })),
        ]}
      />
    )
  if (kind === 'boolean')
    return <Select {...props} choices={[none, ...['true', 'false'].map((value) => ({ value, label: value }))]} />
  if (kind === 'json') {
    const json = { ...props, label: `${props.label}, ${t.operations.json}` }
    const known = name === 'storeIds' && at.store ? [at.store.storeId] : isRequired ? example : undefined
    const start = known === undefined ? undefined : JSON.stringify(known, null, 2)
    return <TextArea {...json} rows={start === undefined ? 3 : 8} value={start} />
  }
  if (kind === 'text' && (schema.maxLength ?? 0) > LINE) return <TextArea {...props} />
  if (kind === 'date') return <TextField {...props} type="date" />
  return <TextField {...props} {...(kind === 'number' && { inputmode: 'decimal' as const })} />
}

function Answer({ at, result }: { at: ViewContext; result: Record<string, unknown> }) {
  const t = at.texts.developers.operations
  const whole = JSON.stringify(result, null, 2)
  const text = whole.slice(0, ANSWER_SHOWN)
  return (
    <Card title={`${at.params['name'] ?? ''}: ${t.answer}`}>
      <div class="stack">
        {text === whole ? null : (
          <Notice title={t.cut(at.formats.number(ANSWER_SHOWN), at.formats.number(whole.length))}>
            <code>untag api {at.params['name'] ?? ''}</code>
          </Notice>
        )}
        <Json text={text} />
        <div class="form-foot">
          <a class="button main" href={at.path}>
            {t.again}
          </a>
          <button type="button" class="button needs-script" data-copy={text} data-done={at.texts.developers.copied}>
            {at.texts.developers.copy}
          </button>
          <a class="button" href="/console/operations">
            {t.back}
          </a>
        </div>
      </div>
    </Card>
  )
}
