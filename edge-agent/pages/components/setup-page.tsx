import { DEVICE_TYPES, type DeviceType } from '../../../policy/vocabulary.ts'
import type { AttachedDevice } from '../../setup/device-discovery.ts'
import { deviceDetail, deviceState, deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { DeviceTests } from './device-tests.tsx'
import { Frame, type FrameProps, type Localization } from './frame.tsx'
import { Technical } from './technical.tsx'

export interface SetupPageProps {
  localization: Localization
  script?: FrameProps['script']
  devices: readonly (PageDevice & { identity?: { description: string; firmwareVersion?: string } })[]
  attached: readonly AttachedDevice[]
  /** Configuration file that the page can add devices to; undefined if there is none. */
  configFile: string | undefined
  /** True if the outputs of the device can be tested now. */
  mayTest(deviceId: string): boolean
  /** Device that the page has added just now; undefined without one. */
  addedId: string | undefined
  /** Warning that the ledger of the agent is untrusted. */
  warning: string | undefined
  /** Why searches for devices failed. */
  notes: readonly string[]
}

/** Page for technicians: configured devices with their states, and attached devices that can be added. */
export function SetupPage(props: SetupPageProps) {
  const { localization, script, devices, attached, configFile, mayTest, warning, notes } = props
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
        <Added {...props} />
        <Configured texts={texts} devices={devices} mayTest={mayTest} />
        <AttachedDevices texts={texts} attached={attached} configFile={configFile} />
        {notes.map((note) => (
          <Technical texts={texts} text={note} />
        ))}
        <LlrpSearch texts={texts} isWritable={configFile !== undefined} />
        <p class="row">
          <a class="button" href="/station">
            {texts.chooseDevice}
          </a>
        </p>
      </main>
    </Frame>
  )
}

/** Reports that the page has added a device. */
function Added({ localization, devices, configFile = '', addedId }: SetupPageProps) {
  const { texts } = localization
  if (addedId === undefined) return null
  const device = devices.find(({ deviceId }) => deviceId === addedId)
  return (
    <p class="banner" role="status" tabindex={-1} data-added>
      {device ? texts.setup.added(deviceTitle(device, texts), configFile) : texts.setup.restartNeeded(configFile)}
    </p>
  )
}

/** The devices of the configuration, each with buttons that check and test it. */
function Configured({ texts, devices, mayTest }: { texts: Texts } & Pick<SetupPageProps, 'devices' | 'mayTest'>) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.configured}</h2>
      <p class="soft">{devices.length === 0 ? texts.noDevices : setup.checkHint}</p>
      <ul class="devices">
        {devices.map((device) => (
          <li>
            {/* Scanners and readers that serve another device (`feeds`) have no type. */}
            <h3>{device.name === null && device.deviceType === null ? device.driver : deviceTitle(device, texts)}</h3>
            <p class="ids">
              {device.deviceId} · {device.driver}
            </p>
            <p role="status" data-found={device.deviceId}>
              {deviceState(device, texts)}
            </p>
            <Technical texts={texts} text={deviceDetail(device, texts)} data={{ 'data-detail': device.deviceId }} />
            <p class="row">
              <button type="button" data-check={device.deviceId}>
                {setup.check}
              </button>
            </p>
            <DeviceTests texts={texts} device={device} hasOutputs={mayTest(device.deviceId)} />
          </li>
        ))}
      </ul>
    </>
  )
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
      <p class="soft">
        {attached.length === 0
          ? setup.nothingAttached
          : configFile === undefined
            ? setup.entryHint
            : setup.addHint(configFile)}
      </p>
      <ul class="devices">
        {attached.map(({ kind, name, at, fix, entry }) => (
          <li>
            <h3>
              {setup.kinds[kind]}: {name}
            </h3>
            <p class="ids">{at}</p>
            <Technical texts={texts} text={fix ?? ''} />
            <Entry
              texts={texts}
              text={JSON.stringify(entry)}
              type={TYPES[kind]}
              isWritable={configFile !== undefined}
            />
          </li>
        ))}
      </ul>
    </>
  )
}

/** Form that searches for an LLRP reader at an address. */
function LlrpSearch({ texts, isWritable }: { texts: Texts; isWritable: boolean }) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.llrp}</h2>
      <form data-slot="llrp" method="post">
        <label for="address">{setup.address}</label>
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
      <p role="status" data-slot="llrp-status" />
      <Technical texts={texts} text="" data={{ 'data-slot': 'llrp-technical' }} />
      <div data-slot="llrp-entry" hidden>
        <Entry texts={texts} text="" type={TYPES.llrp} isWritable={isWritable} />
      </div>
    </>
  )
}

/** The most likely type of a device, by how it was found. */
const TYPES: Record<AttachedDevice['kind'], DeviceType> = {
  serial: 'self_checkout_detacher',
  nfc: 'pos_deactivator',
  llrp: 'exit_gate',
}

interface EntryProps {
  texts: Texts
  text: string
  /** Suggested type of the device. */
  type: DeviceType
  isWritable: boolean
}

/**
 * Suggested configuration entry. Users can edit the entry if the configuration file is writable. Otherwise users can
 * only copy the entry.
 */
function Entry({ texts, text, type, isWritable }: EntryProps) {
  const { setup } = texts
  if (!isWritable) {
    return (
      <pre data-entry tabindex={0} aria-label={setup.entry}>
        {text}
      </pre>
    )
  }
  return (
    <form data-write method="post">
      <label>
        {setup.code}
        <input
          data-code
          maxlength={60}
          autocomplete="off"
          autocapitalize="characters"
          spellcheck={false}
          placeholder="K7QX-2M9T-4WZ1"
        />
      </label>
      <p class="soft">{setup.codeHint}</p>
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
      <textarea
        data-entry
        aria-label={setup.entry}
        rows={4}
        maxlength={4_000}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      >
        {text}
      </textarea>
      <p class="row">
        <button type="submit">{setup.add}</button>
      </p>
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </form>
  )
}
