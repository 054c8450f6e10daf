import { API_VERSION, type Description, type DescribedOperation } from './openapi.ts'

type Json = Record<string, unknown>

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json'

/**
 * Makes a Postman collection (v2.1), which Bruno and Insomnia can also read. The collection has a folder for each area,
 * and the variables `baseUrl` and `key`.
 */
export function postmanCollection({ operations, baseUrl }: Description): Json {
  const areas = [...new Set(operations.map((o) => o.operation.area))]
  return {
    info: { name: `untag ${API_VERSION}`, description: 'Set the variable `key` to a test key.', schema: SCHEMA },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{key}}', type: 'string' }] },
    variable: [
      { key: 'baseUrl', value: baseUrl, type: 'string' },
      { key: 'key', value: '', type: 'string' },
    ],
    item: areas.map((area) => ({ name: area, item: operations.filter((o) => o.operation.area === area).map(itemOf) })),
  }
}

function itemOf({ operation, answer }: DescribedOperation): Json {
  const { name, getOnly, example, description, callers } = operation
  const query = getOnly ? Object.entries(example).map(([key, value]) => ({ key, value: String(value) })) : []
  const search =
    query.length > 0 ? `?${query.map(({ key, value }) => `${key}=${encodeURIComponent(value)}`).join('&')}` : ''
  const request = {
    method: getOnly ? 'GET' : 'POST',
    header: getOnly || isForm(operation) ? [] : [{ key: 'Content-Type', value: 'application/json' }],
    ...(callers.includes('anyone') && { auth: { type: 'noauth' } }),
    ...(!getOnly && { body: bodyOf(operation) }),
    url: {
      raw: `{{baseUrl}}/${name}${search}`,
      host: ['{{baseUrl}}'],
      path: [name],
      ...(query.length > 0 && { query }),
    },
    description,
  }
  const response = {
    name: '200',
    originalRequest: request,
    status: 'OK',
    code: 200,
    _postman_previewlanguage: 'json',
    header: [{ key: 'Content-Type', value: 'application/json' }],
    body: JSON.stringify(answer, null, 2),
  }
  return { name, request, response: [response] }
}

function isForm({ multipart }: DescribedOperation['operation']): boolean {
  return multipart?.alsoJson === false
}

function bodyOf(operation: DescribedOperation['operation']): Json {
  const { example, multipart } = operation
  if (!multipart || !isForm(operation))
    return { mode: 'raw', raw: JSON.stringify(example, null, 2), options: { raw: { language: 'json' } } }
  const texts = Object.entries(example).filter(([key]) => key !== multipart.fileField)
  return {
    mode: 'formdata',
    formdata: [
      ...texts.map(([key, value]) => ({ key, value: String(value), type: 'text' })),
      { key: multipart.fileField, type: 'file', src: [] },
    ],
  }
}
