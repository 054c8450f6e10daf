import { type DeviceType, DEVICE_TYPES } from '../../../policy/vocabulary.ts'
import { UNNAMED_DEVICE } from '../../setup/config-file.ts'
import type { AttachedDevice, DeviceFinding } from '../../setup/device-discovery.ts'
import { deviceDetail, deviceState, deviceTitle, isWithoutReader } from '../model/status-view.ts'
import { type PageDevice, type PageTestedOutput, WALK_SECONDS } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { Frame, type FrameProps, type Localization, Technical } from './frame.tsx'
import { settingFields } from '../../setup/settings-form.ts'
import { DRIVER_LABELS } from '../texts/setting-labels.ts'
import { PLAIN, SettingTemplates } from './setting-templates.tsx'

/** Buttons that test the outputs of a new device, and a walk test for gates. */
function DeviceTests({
  texts,
  device,
  outputs,
}: {
  texts: Texts
  device: PageDevice
  outputs: readonly PageTestedOutput[]
}) {
  const { setup } = texts
  const { deviceId } = device
  const isGate = device.deviceType === 'exit_gate'
  const isBlind = isWithoutReader(device)
  if (outputs.length === 0 && !isGate) return null
  return (
    <div data-tests={deviceId} role="group" aria-label={`${setup.test}: ${device.name ?? deviceId}`}>
      {outputs.length > 0 ? <p class="soft">{setup.testHint}</p> : null}
      <p class="row">
        {outputs.map((output) => (
          <button type="button" data-test={output}>
            {setup.outputs[output]}
          </button>
        ))}
        {isGate && !isBlind ? (
          <button type="button" data-walk={String(WALK_SECONDS)}>
            {setup.walk}
          </button>
        ) : null}
      </p>
      {isBlind ? <p class="soft">{setup.noWalk}</p> : null}
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </div>
  )
}

interface DeviceFormProps {
  texts: Texts
  /** Suggested entry of the configuration. */
  entry: Readonly<Record<string, unknown>>
  /** Suggested type of the device. */
  type: DeviceType
  isWritable: boolean
}

/**
 * Form that registers and adds a device. The page's script fills in the fields of its driver. If the agent has no
 * configuration file, shows only the entry, to copy.
 */
function DeviceForm({ texts, entry, type, isWritable }: DeviceFormProps) {
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
      <div class="field" data-code-field data-label={setup.code}>
        <label>
          {setup.code}
          <span class="ids">{setup.codeOrId}</span>
          <input data-code maxlength={60} {...PLAIN} autocapitalize="characters" placeholder="K7QX-2M9T-4WZ1" />
        </label>
      </div>
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
        <span class="ids">{setup.required}</span>
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
      <SettingsPart texts={texts} driver={entry['driver']} text={text} />
      <p class="row">
        <button type="submit">{setup.add}</button>
      </p>
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </form>
  )
}

/** Form that changes or removes a device which the page has added. */
function ChangeForm({ texts, entry, name }: Pick<DeviceFormProps, 'texts' | 'entry'> & { name: string | undefined }) {
  const { setup } = texts
  return (
    <details>
      <summary>{setup.change}</summary>
      <form data-change={String(entry['deviceId'])} method="post" novalidate>
        {name === undefined ? null : (
          <label>
            {setup.name}
            <input data-name maxlength={120} autocomplete="off" value={name} />
          </label>
        )}
        <SettingsPart texts={texts} driver={entry['driver']} text={JSON.stringify(entry)} />
        <p class="row">
          <button type="submit">{setup.saveChange}</button>
          <button type="button" data-remove>
            {setup.remove}
          </button>
        </p>
        <p role="status" data-status />
        <Technical texts={texts} text="" data={{ 'data-technical': true }} />
      </form>
    </details>
  )
}

/** The settings of a device as fields, and as the JSON text that the fields change. */
function SettingsPart({ texts, driver: chosen, text }: { texts: Texts; driver: unknown; text: string }) {
  const { setup } = texts
  return (
    <>
      <fieldset>
        <legend>{setup.settings}</legend>
        <label>
          {setup.driver}
          <span class="ids">{setup.required}</span>
          <select data-driver-choice>
            {[...settingFields().keys()].map((driver) => (
              <option value={driver} selected={chosen === driver}>
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
    </>
  )
}

interface SetupPageProps {
  localization: Localization
  script?: FrameProps['script']
  devices: readonly (PageDevice & { identity?: { description: string; firmwareVersion?: string } })[]
  attached: readonly AttachedDevice[]
  /** Configuration file that the page can add devices to; undefined if there is none. */
  configFile: string | undefined
  /** The outputs of the device that can be tested now. */
  testable(deviceId: string): readonly PageTestedOutput[]
  /** The entry of a device that the page may change; undefined for other devices. */
  changeable(deviceId: string): Readonly<Record<string, unknown>> | undefined
  /** Name of a device that the page may rename; undefined for other devices. */
  nameIn(deviceId: string): string | undefined
  /** Device that the page has changed or removed just now; undefined without one. */
  changedId: string | undefined
  /** True if the page has removed the device, and the agent was not restarted since. */
  isRemoved(deviceId: string): boolean
  /** Device that the page has added just now; undefined without one. */
  addedId: string | undefined
  /** True if the file has changes of the page that wait for a restart of the agent. */
  isRestartDue: boolean
  /** True if a device has an emergency input. */
  hasFireAlarm: boolean
  /** Warning that the ledger of the agent is untrusted. */
  warning: string | undefined
  /** Why searches for devices failed. */
  notes: readonly string[]
}

/** Page for technicians: configured devices with their states, and attached devices that can be added. */
export function SetupPage(props: SetupPageProps) {
  const { localization, script, devices, attached, configFile, hasFireAlarm, warning, notes } = props
  const isListed = devices.some(({ deviceId }) => deviceId === (props.addedId ?? props.changedId))
  const { texts } = localization
  const { setup } = texts
  return (
    <Frame title={`${setup.title} · untag`} localization={localization} kind="list" script={script}>
      <main>
        <h1>{setup.title}</h1>
        {warning === undefined ? null : (
          <p class="banner" role="alert" data-tone="bad">
            {warning}
          </p>
        )}
        {isListed ? null : <Saved {...props} />}
        <Configured texts={texts} {...props} />
        <AttachedDevices texts={texts} attached={attached} configFile={configFile} />
        {notes.map((note) => (
          <Technical texts={texts} text={note} />
        ))}
        <NetworkSearch texts={texts} isWritable={configFile !== undefined} />
        {configFile === undefined ? null : <ByHand texts={texts} />}
        <p class="row">
          <a class="button" href="/station">
            {setup.pages}
          </a>
        </p>
        {configFile === undefined ? null : (
          <SettingTemplates texts={texts} devices={devices} hasFireAlarm={hasFireAlarm} />
        )}
      </main>
    </Frame>
  )
}

/**
 * Reports what the page has saved just now, and what to do next. Stands beside the form of the device, which may be far
 * below the top, else at the top.
 */
function Saved(props: SetupPageProps) {
  const { localization, devices, configFile = '', addedId, changedId, isRestartDue } = props
  const { setup } = localization.texts
  const isAddedInUse = addedId === undefined || devices.some(({ deviceId }) => deviceId === addedId)
  return (
    <>
      <Added {...props} />
      {isRestartDue && isAddedInUse ? (
        <div class="banner" role="status" tabindex={-1} data-added>
          <p>{setup.changed(configFile)}</p>
          <p class="next">{setup.next.restart}</p>
        </div>
      ) : null}
      {changedId !== undefined && !isRestartDue ? (
        <div class="banner" role="status" tabindex={-1} data-added data-tone="good">
          <p>{setup.changedInUse(configFile)}</p>
        </div>
      ) : null}
    </>
  )
}

/** Reports that the page has added a device, and what to do next. */
function Added({ localization, devices, configFile = '', addedId }: SetupPageProps) {
  const { texts } = localization
  const { setup } = texts
  if (addedId === undefined) return null
  const device = devices.find(({ deviceId }) => deviceId === addedId)
  const next = nextStep(device)
  return (
    <div
      class="banner"
      role="status"
      tabindex={-1}
      data-added
      data-tone={device && next !== 'reader' ? 'good' : undefined}
    >
      <p>{device ? setup.added(nameOf(device, texts), configFile) : setup.restartNeeded(configFile)}</p>
      <p class="next">{setup.next[next]}</p>
      {device && device.feeds === null ? (
        <p class="row">
          <a class="button" href={pageOf(device)}>
            {setup.openPage}
          </a>
        </p>
      ) : null}
    </div>
  )
}

function nextStep(device: PageDevice | undefined): keyof Texts['setup']['next'] {
  if (!device) return 'restart'
  if (isWithoutReader(device)) return 'reader'
  return device.feeds === null ? 'test' : 'read'
}

function pageOf({ deviceId, deviceType }: PageDevice): string {
  return `/${deviceType === 'exit_gate' ? 'gate' : 'station'}?${new URLSearchParams({ device: deviceId })}`
}

/** Characters of an id that tell devices apart. */
const ID_SHOWN = 6

/** Scanners and readers that serve another device (`feeds`) have no type. */
function nameOf(
  device: PageDevice & { driver: string },
  texts: Texts,
  devices: readonly (PageDevice & { driver: string })[] = [],
): string {
  if (device.name !== null) return device.name
  // The console names it in the same way: several devices may be without a name.
  if (device.deviceType !== null) return `${deviceTitle(device, texts)} …${device.deviceId.slice(-ID_SHOWN)}`
  const served = devices.find(({ deviceId }) => deviceId === device.feeds)
  return served === undefined ? device.driver : `${deviceTitle(served, texts)} · ${device.driver}`
}

/** The devices of the configuration, each with buttons that check and test it. */
function Configured({ texts, ...props }: { texts: Texts } & SetupPageProps) {
  const { devices, configFile, testable, changeable, nameIn, isRemoved } = props
  const { setup } = texts
  return (
    <>
      <h2>{setup.configured}</h2>
      <p class="soft">{devices.length === 0 ? texts.noDevices : setup.checkHint}</p>
      {devices.length === 0 || configFile === undefined ? null : <p class="soft">{setup.changeHint(configFile)}</p>}
      <ul class="devices">
        {devices.map((device) => (
          <li>
            <h3>{nameOf(device, texts, devices)}</h3>
            <p class="ids">
              {device.deviceId} · {device.driver}
            </p>
            {device.deviceId === (props.addedId ?? props.changedId) ? <Saved {...props} /> : null}
            {isRemoved(device.deviceId) ? (
              <p class="notice">{setup.removed}</p>
            ) : (
              <>
                <p role="status" data-found={device.deviceId}>
                  {deviceState(device, texts)}
                </p>
                <Technical texts={texts} text={deviceDetail(device, texts)} data={{ 'data-detail': device.deviceId }} />
                <p class="row">
                  <button type="button" data-check={device.deviceId}>
                    {setup.check}
                  </button>
                </p>
                <DeviceTests texts={texts} device={device} outputs={testable(device.deviceId)} />
              </>
            )}
            <Changeable texts={texts} entry={changeable(device.deviceId)} name={nameIn(device.deviceId)} />
          </li>
        ))}
      </ul>
    </>
  )
}

function Changeable({
  texts,
  entry,
  name,
}: {
  texts: Texts
  entry: DeviceFormProps['entry'] | undefined
  name: string | undefined
}) {
  return entry === undefined ? null : <ChangeForm texts={texts} entry={entry} name={name} />
}

/** Devices that are attached to this machine and not configured. */
function AttachedDevices({
  texts,
  attached,
  configFile,
}: { texts: Texts } & Pick<SetupPageProps, 'attached' | 'configFile'>) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.attached}</h2>
      {configFile === undefined ? (
        <p class="notice">{setup.entryHint}</p>
      ) : (
        <p class="soft">{setup.addHint(configFile)}</p>
      )}
      {attached.length === 0 ? <p class="soft">{setup.nothingAttached}</p> : null}
      <ul class="devices">
        {attached.map(({ kind, name, at, fix, entry }) => (
          <li>
            <h3>
              {setup.kinds[kind]}: {name}
            </h3>
            <p class="ids">{at}</p>
            <Technical texts={texts} text={fix ?? ''} />
            {configFile === undefined ? (
              <DeviceForm texts={texts} entry={entry} type={TYPES[kind]} isWritable={false} />
            ) : (
              <details>
                <summary>{setup.setUp}</summary>
                <DeviceForm texts={texts} entry={entry} type={TYPES[kind]} isWritable />
              </details>
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** Form that searches for a reader or board at an address. */
function NetworkSearch({ texts, isWritable }: { texts: Texts; isWritable: boolean }) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.network}</h2>
      <p class="soft">{setup.networkHint}</p>
      <form data-slot="search" method="post">
        <label for="address">
          {setup.address} <span class="ids">{setup.required}</span>
        </label>
        <div class="row">
          <input
            id="address"
            data-slot="address"
            maxlength={206}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            placeholder="10.0.0.7"
            required
          />
          <button type="submit">{setup.look}</button>
        </div>
      </form>
      <p role="status" data-slot="search-status" />
      <Technical texts={texts} text="" data={{ 'data-slot': 'search-technical' }} />
      <div data-slot="search-entry" hidden>
        <DeviceForm texts={texts} entry={{}} type={TYPES.llrp} isWritable={isWritable} />
      </div>
    </>
  )
}

/** Form for a device that no search finds. */
function ByHand({ texts }: { texts: Texts }) {
  const { setup } = texts
  const entry = { deviceId: UNNAMED_DEVICE, driver: 'modbus' }
  return (
    <details class="section">
      <summary>{setup.byHand}</summary>
      <p class="soft">{setup.byHandHint}</p>
      <DeviceForm texts={texts} entry={entry} type={TYPES.board} isWritable />
    </details>
  )
}

/** The most likely type of a device, by how it was found. */
const TYPES: Record<DeviceFinding, DeviceType> = {
  serial: 'self_checkout_detacher',
  nfc: 'pos_deactivator',
  llrp: 'exit_gate',
  board: 'self_checkout_detacher',
}
