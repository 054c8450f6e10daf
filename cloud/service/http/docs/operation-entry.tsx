import { callersInWords } from '../../description/callers.ts'
import { codeSamples } from '../../description/code-samples.ts'
import { basesOf, fieldsOf } from '../../description/fields.ts'
import type { Description, DescribedOperation } from '../../description/openapi.ts'
import { FieldList } from './field-list.tsx'
import { codeId } from './code-lists.tsx'
import { ownIdsIn } from './own-ids.ts'
import { Code, Inline, Prose } from './prose.tsx'

/** Statuses that every operation may return. The guide describes these statuses, so entries only name them. */
const EVERYWHERE: ReadonlySet<number> = new Set([401, 413, 415, 429, 500, 503])

/** Section of one operation. */
export function OperationEntry({
  described,
  description,
}: {
  described: DescribedOperation
  description: Description
}) {
  const { operation, request, response, errors } = described
  const { components, baseUrl } = description
  const { name, summary } = operation
  const path = new URL(`${baseUrl}/${name}`).pathname
  const method = operation.getOnly ? 'GET' : 'POST'
  return (
    <article
      id={name}
      data-path={path}
      data-method={method}
      data-try={ownIdsIn(operation)}
      data-changes={operation.changes ? '' : undefined}
      data-open={operation.callers.includes('anyone') ? '' : undefined}
      data-file={operation.multipart?.fileField}
    >
      <header>
        <h3>
          <a href={`#${name}`}>{name}</a>
        </h3>
        <span class="tag">{operation.minimumPackage}</span>
      </header>
      <div class="cols">
        <div class="text">
          <Prose text={summary} />
          {operation.description === summary ? null : <Prose text={operation.description} />}
          <p class="meta">
            <code>
              {method} {path}
            </code>{' '}
            Called with {callersInWords(operation)}.{operation.changes ? ' Takes an Idempotency-Key.' : ''}
            {operation.get ? ' GET answers the older listing form.' : ''}
            {operation.emits.length > 0 ? ` Emits ${operation.emits.join(', ')}.` : ''}
          </p>
          <h4>Request</h4>
          <FieldList
            fields={fieldsOf(request, components, false)}
            bases={basesOf(request, components)}
            mark="required"
          />
          <details>
            <summary>Answer fields</summary>
            <FieldList
              fields={fieldsOf(response, components, false)}
              bases={basesOf(response, components)}
              mark="optional"
            />
          </details>
          <Errors errors={errors} />
        </div>
        <Samples described={described} baseUrl={baseUrl} />
      </div>
    </article>
  )
}

function Errors({ errors }: Pick<DescribedOperation, 'errors'>) {
  return (
    <details>
      <summary>Errors</summary>
      <ul class="errors">
        {errors
          .filter(({ status }) => !EVERYWHERE.has(status))
          .toSorted((a, b) => a.status - b.status)
          .map(({ status, code, example }) => (
            <li>
              <b>{status}</b>{' '}
              <a href={`#${example.reason === undefined ? 'errors' : codeId('reason', example.reason)}`}>
                <code>{example.reason ?? code}</code>
              </a>{' '}
              <Inline text={example.error} />
            </li>
          ))}
        <li>
          And <a href="#errors">those of every operation</a>:{' '}
          {[...new Set(errors.map((e) => e.status).filter((status) => EVERYWHERE.has(status)))]
            .toSorted((a, b) => a - b)
            .join(', ')}
          .
        </li>
      </ul>
    </details>
  )
}

function Samples({ described, baseUrl }: { described: DescribedOperation; baseUrl: string }) {
  const { operation, answer } = described
  const { name } = operation
  return (
    <div class="samples">
      {codeSamples(operation, baseUrl).map(({ language, code }, i) => (
        <details name={`code-${name}`} open={i === 0}>
          <summary>{language}</summary>
          <Code text={code} />
        </details>
      ))}
      <details name={`code-${name}`}>
        <summary>Example answer</summary>
        <Code text={JSON.stringify(answer, null, 2)} />
      </details>
    </div>
  )
}

/** Initial requests of the forms for trying operations. */
export function exampleRequests({ operations }: Description): Record<string, unknown> {
  return Object.fromEntries(operations.map(({ operation }) => [operation.name, operation.example]))
}
