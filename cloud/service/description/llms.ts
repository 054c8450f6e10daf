import type { Description, DescribedOperation } from './openapi.ts'
import { callersInWords } from './callers.ts'
import { codeSamples } from './code-samples.ts'
import { basesOf, fieldsOf, type Field } from './fields.ts'
import type { GuideSection } from './guide.ts'
import type { JsonSchema } from '../../../policy/json-schema.ts'

const INTRODUCTION =
  '# untag\n\n> Decides, at the shop door and at the till, whether a security tag may come off: a retail API for stores, products, scan and go, receipts and security tags.'

function areasOf({ operations }: Description): string[] {
  return [...new Set(operations.map((o) => o.operation.area))]
}

function titled(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Overview of the API as Markdown, one line for each operation (llmstxt.org). */
export function llmsText(description: Description, guide: readonly GuideSection[]): string {
  const { origin } = new URL(description.baseUrl)
  const calls = guide.find((section) => section.id === 'calls')?.text.join('\n\n') ?? ''
  const areas = areasOf(description).map((area) => {
    const rows = description.operations
      .filter((o) => o.operation.area === area)
      .map(({ operation }) => `- [${operation.name}](${origin}/docs#${operation.name}): ${operation.summary}`)
    return `## ${titled(area)}\n\n${rows.join('\n')}`
  })
  const documents = [
    ['Everything in one page', '/llms-full.txt'],
    ['OpenAPI 3.0.3', '/openapi.json'],
    ['Reference for people', '/docs'],
    ['Postman collection', '/postman.json'],
  ]
  const more = `## Documents\n\n${documents.map(([name, path]) => `- [${name}](${origin}${path})`).join('\n')}`
  return `${[INTRODUCTION, calls, ...areas, more].join('\n\n')}\n`
}

/** The whole reference as one Markdown page. */
export function llmsFullText(description: Description, guide: readonly GuideSection[]): string {
  const sections = guide.map(({ title, text }) => `## ${title}\n\n${text.join('\n\n')}`)
  const areas = areasOf(description).map((area) => {
    const entries = description.operations
      .filter((o) => o.operation.area === area)
      .map((each) => operationText(each, description))
    return `## ${titled(area)}\n\n${entries.join('\n\n')}`
  })
  const used = new Set(Object.keys(description.shared))
  const shapes = [...used].map(
    (name) =>
      `### ${name}\n\n${fieldList(fieldsOf(description.components[name] ?? {}, description.components, false))}`,
  )
  return `${[INTRODUCTION, ...sections, ...areas, `## Shared schemas\n\n${shapes.join('\n\n')}`].join('\n\n')}\n`
}

function operationText(
  { operation, request, response, answer, errors }: DescribedOperation,
  { components, baseUrl }: Description,
): string {
  const { name, summary, minimumPackage, emits } = operation
  const about = [
    `Package ${minimumPackage}; called with ${callersInWords(operation)}.`,
    ...(operation.changes ? ['Takes an Idempotency-Key.'] : []),
    ...(operation.get ? ['GET answers the older listing form.'] : []),
    ...(emits.length > 0 ? [`Emits ${emits.join(', ')}.`] : []),
  ]
  const refusals = [...new Set(errors.map(({ status, example }) => `${status} ${example.reason ?? example.code}`))]
  return [
    `### ${name}`,
    summary,
    ...(operation.description === summary ? [] : [operation.description]),
    about.join(' '),
    `Request:\n\n${fieldListOf(request, components)}`,
    `\`\`\`sh\n${codeSamples(operation, baseUrl)[0]?.code ?? ''}\n\`\`\``,
    `Answer:\n\n${fieldListOf(response, components)}`,
    `\`\`\`json\n${JSON.stringify(answer)}\n\`\`\``,
    `Errors: ${refusals.join(', ')}.`,
  ].join('\n\n')
}

function fieldListOf(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): string {
  const bases = basesOf(schema, components).map((base) => `- everything of ${base}`)
  return (
    [...bases, fieldList(fieldsOf(schema, components, false))].filter((part) => part !== '').join('\n') || 'nothing'
  )
}

function fieldList(fields: readonly Field[]): string {
  return fields
    .map(({ name, type, required, limits, description }) => {
      const notes = [required ? 'required' : '', limits, description].filter((note) => note !== '')
      return `- \`${name}\` ${type}${notes.length > 0 ? `: ${notes.join('; ')}` : ''}`
    })
    .join('\n')
}
