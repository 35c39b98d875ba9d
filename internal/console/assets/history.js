// What the stored log tells: search, a container's life, egress over time, another policy. All text is made visible by the program, and only ever
// becomes text here.

import { element, lines, note, shorten, state } from './app.js';

const $ = (id) => document.getElementById(id);
const theirs = ['questions', 'containers', 'approvals'];
const kinds = ['exec', 'connect', 'hold', 'verdict', 'grant', 'approval', 'taint', 'deny', 'drop', 'escape', 'finding', 'tool', 'model', 'mode', 'error', 'lost', 'start', 'stop'];
const mine = {}; // view to its main element
let shown = ''; // view, of these; empty: one of the others

// Asking the program. A view asks one thing at a time: a new one ends the one before.

const under = {}; // view to what ends its request

async function ask(view, path, body) {
	under[view]?.abort();
	const ends = under[view] = new AbortController();
	mine[view].setAttribute('aria-busy', 'true');
	try {
		const answer = await fetch('/' + path, {
			method: 'POST',
			headers: { 'Content-Type': 'application/json', 'X-Weir-Key': sessionStorage.getItem('key') ?? '' },
			body: JSON.stringify(body),
			credentials: 'same-origin',
			signal: ends.signal,
		});
		const result = await answer.json();
		if (!answer.ok) throw new Error(result.error);
		note('');
		return result;
	} catch (e) {
		if (ends.signal.aborted) return null;
		note(e.message || 'weir console does not answer: is it still running?', true);
		return null;
	} finally {
		if (under[view] === ends) mine[view].removeAttribute('aria-busy');
	}
}

// Parts of views.

function field(label, input) {
	const l = element('label', '', label + ' ');
	l.append(input);
	return l;
}

function input(id, attributes = {}) {
	const e = element(attributes.tag ?? 'input');
	e.id = id;
	e.autocomplete = 'off';
	for (const [name, value] of Object.entries(attributes)) if (name !== 'tag') e.setAttribute(name, value);
	return e;
}

function choice(id, options) {
	const e = element('select');
	e.id = id;
	for (const [value, text] of options) {
		const o = element('option', '', text);
		o.value = value;
		e.append(o);
	}
	return e;
}

const sinceOf = (id) => choice(id, [['', 'all that is stored'], ['3600', 'the last hour'], ['86400', 'the last day'], ['604800', 'the last week']]);
const since = (id) => $(id).value ? { since: new Date(Date.now() - 1000 * Number($(id).value)).toISOString() } : {};
const moment = (t) => t.slice(0, 19).replace('T', ' ');
const size = (n) => n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
const many = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

// form is fields and what is done with them.
function form(fields, word, done) {
	const f = element('form', 'ask');
	f.append(...fields, element('button', '', word));
	f.addEventListener('submit', (e) => { e.preventDefault(); done(); });
	return f;
}

function make(view, key, title, ...parts) {
	const tab = element('button');
	tab.id = 'tab-' + view;
	tab.setAttribute('aria-pressed', 'false');
	tab.append(element('kbd', '', key), ' ' + title);
	tab.addEventListener('click', () => show(view));
	document.querySelector('nav').append(tab);
	const main = element('main');
	main.id = view;
	main.hidden = true;
	main.append(element('h2', 'unseen', title), ...parts);
	document.querySelector('main:last-of-type').after(main);
	mine[view] = main;
}

// What the container of a view may be: those that there are now, or any name that the log has.
function containerField(id) {
	const list = element('datalist');
	list.id = id + '-list';
	const label = field('Container', input(id, { list: list.id, placeholder: 'id or name' }));
	label.append(list);
	return label;
}

function fillContainers() {
	for (const list of document.querySelectorAll('datalist')) {
		list.replaceChildren(...state.containers.map((c) => {
			const o = element('option', '', shorten(c.name, 80));
			o.value = c.ref;
			return o;
		}));
	}
}

// Search.

let last = null; // what was searched for, for its older events

make('search', '4', 'Search',
	form([
		field('Text', input('search-text', { type: 'search', maxlength: '1000' })),
		field('Kind', choice('search-kind', [['', 'all'], ...kinds.map((k) => [k, k])])),
		containerField('search-container'), field('Of', sinceOf('search-since')),
	], 'search', () => search({
		text: $('search-text').value, container: $('search-container').value.trim(),
		...($('search-kind').value ? { kinds: [$('search-kind').value] } : {}), ...since('search-since'),
	})),
	Object.assign(element('p', 'soft'), { id: 'search-says' }), Object.assign(element('ol', 'rows'), { id: 'rows' }),
	Object.assign(element('button', '', 'older'), { id: 'older', hidden: true }),
	element('p', 'keys', '/ search, j k select, enter shows the event as it is stored, o older ones'));

async function search(q, further = false) {
	const began = performance.now();
	const a = await ask('search', 'search', q);
	if (!a) return;
	last = q;
	if (!further) $('rows').replaceChildren();
	$('rows').append(...a.events.map(row));
	const n = $('rows').children.length;
	$('search-says').textContent = [n ? `${many(n, 'event')}, newest first` : 'nothing was found', `${((performance.now() - began) / 1000).toFixed(1)} s`,
		a.more ? 'there are older ones' : a.missing].filter(Boolean).join('; ');
	$('older').hidden = !a.more;
	$('rows').children[n - a.events.length]?.firstChild.focus();
}

function older() {
	if (!$('older').hidden) search({ ...last, before: $('rows').lastChild.dataset.time }, true);
}

function row(e) {
	const item = element('li');
	item.dataset.time = e.time;
	const button = element('button', 'row');
	button.setAttribute('aria-expanded', 'false');
	button.append(element('span', 'when', moment(e.time)), element('span', 'kind', e.kind), element('span', 'what', shorten(e.text, 600)));
	button.addEventListener('click', () => {
		const open = item.querySelector('.text');
		button.setAttribute('aria-expanded', String(!open));
		if (open) {
			open.remove();
			return;
		}
		const text = element('div', 'text');
		text.tabIndex = 0;
		text.setAttribute('role', 'region');
		text.setAttribute('aria-label', 'the event as it is stored');
		text.append(...lines(e.text + '\n' + e.stored, false));
		item.append(text);
	});
	item.append(button);
	return item;
}

function step(by) {
	const buttons = [...document.querySelectorAll('#rows .row')];
	const at = buttons.indexOf(document.activeElement);
	buttons[Math.min(Math.max(at + by, 0), buttons.length - 1)]?.focus();
}

$('older').addEventListener('click', older);

// Pictures: a lane for each thing, and its marks over time. One is selected by the arrow keys or a click, and told below.

function svg(name, attributes) {
	const e = document.createElementNS('http://www.w3.org/2000/svg', name);
	for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
	return e;
}

const high = (n, most) => n ? Math.min(2 + 3 * Math.log2(1 + n), most) : 0;

function picture(box, says, a, lanes, of) {
	box.replaceChildren();
	says.replaceChildren();
	box.hidden = !lanes.length;
	if (!lanes.length) return;
	const from = Date.parse(a.from), span = Math.max(Date.parse(a.to) - from, 1);
	const x = (t) => 1000 * (Date.parse(t) - from) / span;
	let lane = 0, at = 0;
	const drawn = lanes.map((l, i) => {
		const line = element('div', 'lane');
		const head = element('p', 'head');
		head.append(element('span', 'name', shorten(l.name, 120)), element('span', 'soft', l.told));
		const s = svg('svg', { viewBox: '0 0 1000 34', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
		s.append(svg('line', { class: 'base', x1: 0, x2: 1000, y1: 19, y2: 19 }));
		const marks = l.marks.map((m) => {
			const left = x(m.at), g = svg('g', {}), wide = Math.max(x(m.until) - left, 3);
			const bar = (name, y, height) => height && g.append(svg('rect', { class: name, x: left, width: wide, y, height }));
			if (m.bit) {
				bar('bit', 9, 20);
			} else {
				bar('good', 19 - high(m.good, 17), high(m.good, 17));
				bar('asked', 3, m.asked ? 15 : 0);
				bar('bad', 20, high(m.bad, 13));
				if (!m.good && !m.asked && !m.bad) bar('good', 16, 3);
			}
			s.append(g);
			return { g, left: left + wide / 2 };
		});
		s.addEventListener('click', (e) => {
			const r = s.getBoundingClientRect(), to = 1000 * (e.clientX - r.left) / r.width;
			select(i, nearest(i, to));
		});
		line.append(head, s);
		box.append(line);
		return { line, marks };
	});
	const axis = element('p', 'axis soft');
	for (const part of [0, 0.5, 1]) axis.append(element('span', '', moment(new Date(from + part * span).toISOString())));
	box.append(axis);

	const nearest = (i, to) => drawn[i].marks.reduce((best, m, j) => Math.abs(m.left - to) < Math.abs(drawn[i].marks[best].left - to) ? j : best, 0);
	function select(i, j) {
		box.querySelector('.chosen')?.classList.remove('chosen');
		box.querySelector('.current')?.classList.remove('current');
		lane = i;
		at = j;
		drawn[i].line.classList.add('current');
		drawn[i].line.scrollIntoView({ block: 'nearest' });
		const m = lanes[i].marks[j];
		drawn[i].marks[j]?.g.classList.add('chosen');
		const told = !m ? 'nothing' : m.bit ? `tainted ${moment(m.at)} to ${m.open ? 'the end of the picture' : moment(m.until)}` :
			`${moment(m.at)}: ` + ([[m.good, 'let through or done'], [m.asked, 'asked'], [m.bad, 'refused']].filter(([n]) => n).map(([n, what]) => `${n} ${what}`).join(', ') || 'a grant ended') +
			(m.bytes ? `, ${size(m.bytes)}` : '');
		says.replaceChildren(element('p', '', `${shorten(lanes[i].name, 120)}: ${told}`), ...(m?.texts ?? []).map((t) => element('p', 'mono', t)));
	}
	box.onkeydown = (e) => {
		const marks = drawn[lane].marks, steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] }[e.key];
		if (e.key === 'Enter') {
			const m = lanes[lane].marks[at];
			if (m) look({ ...of, since: m.at, before: m.until });
		} else if (steps) {
			e.preventDefault();
			const next = Math.min(Math.max(lane + steps[0], 0), lanes.length - 1);
			if (next === lane) select(lane, Math.min(Math.max(at + steps[1], 0), Math.max(marks.length - 1, 0)));
			else select(next, drawn[next].marks.length ? nearest(next, marks[at]?.left ?? 0) : 0);
		}
	};
	select(0, 0);
	box.focus();
}

// look searches for what a mark is about.
function look(q) {
	show('search');
	$('search-container').value = q.container ?? '';
	$('search-text').value = q.text ?? '';
	$('search-kind').value = '';
	search(q);
}

function canvas(id, label) {
	const box = element('div', 'picture');
	box.id = id;
	box.tabIndex = 0;
	box.hidden = true;
	box.setAttribute('role', 'application');
	box.setAttribute('aria-label', label + '; arrow keys select a mark, enter lists its events');
	const says = element('div', 'told');
	says.id = id + '-told';
	says.setAttribute('role', 'status');
	return [box, says];
}

const legend = () => element('p', 'keys', 'above the line: let through or done; below: refused; outlined: asked. Arrow keys select, enter lists the events of a mark');
const counts = (l) => [[l.good, 'let through'], [l.asked, 'asked'], [l.bad, 'refused']].filter(([n]) => n).map(([n, what]) => `${n} ${what}`).join(', ') + (l.bytes ? `, ${size(l.bytes)}` : '');

make('life', '5', 'Life',
	form([containerField('life-container'), field('Of', sinceOf('life-since'))], 'show', life),
	Object.assign(element('p', 'soft'), { id: 'life-says' }), ...canvas('life-picture', "the container's life"), legend());

async function life() {
	const container = $('life-container').value.trim();
	const a = await ask('life', 'life', { container, ...since('life-since') });
	if (!a) return;
	const bits = [...new Set((a.taint ?? []).map((s) => s.bit))].map((bit) => {
		const marks = a.taint.filter((s) => s.bit === bit).map((s) => ({ bit, at: s.from, until: s.to, open: s.open, texts: [s.why] }));
		return { name: 'taint: ' + bit, told: marks.at(-1).open ? 'tainted at the end' : 'cleared', marks };
	});
	const lanes = a.lanes.map((l) => ({ name: l.name, told: { commands: many(l.good + l.bad, 'command'), 'bytes let out': `${size(l.bytes ?? 0)} by ${many(l.good, 'grant')}` }[l.name] ?? (counts(l) || 'none'), marks: l.marks }));
	$('life-says').textContent = [many(a.events, 'event'), a.missing].filter(Boolean).join('; ');
	picture($('life-picture'), $('life-picture-told'), a, [...bits, ...lanes], { container });
}

make('egress', '6', 'Egress',
	form([containerField('egress-container'), field('Of', sinceOf('egress-since'))], 'show', egress),
	Object.assign(element('p', 'soft'), { id: 'egress-says' }), ...canvas('egress-picture', 'connections by destination'), legend());

async function egress() {
	const container = $('egress-container').value.trim();
	const a = await ask('egress', 'egress', { container, ...since('egress-since') });
	if (!a) return;
	const lanes = a.lanes.map((l) => ({ name: l.name, told: `${counts(l)}; from ${shorten((l.containers ?? []).join(', '), 200)}`, marks: l.marks }));
	$('egress-says').textContent = [lanes.length ? `${many(lanes.length, 'destination')}, the most used first` : 'no connections in that time', a.left ? `${a.left} more are not shown` : '', a.missing]
		.filter(Boolean).join('; ');
	picture($('egress-picture'), $('egress-picture-told'), a, lanes, { container });
}

// Another policy.

make('policy', '7', 'What if',
	form([
		field('Policy, as a file has it; empty: the defaults', input('policy-text', { tag: 'textarea', rows: '10', spellcheck: 'false' })),
		field('or a file', input('policy-file', { type: 'file' })), field('Events of', sinceOf('policy-since')),
		field('Taught at least so often', input('policy-least', { type: 'number', min: '1', max: '1000000', value: '1' })),
	], 'what would change', replay),
	element('p', 'keys', 'Nothing is changed: a replay decides the stored events again, and asks nobody. Ctrl and enter in the text shows what would change'),
	Object.assign(element('p', 'soft'), { id: 'policy-says' }), Object.assign(element('div', 'diff'), { id: 'diff' }));

$('diff').tabIndex = -1;
$('policy').querySelector('.ask').append(Object.assign(element('button', '', 'what answers teach'), { id: 'suggest', type: 'button' }));

function policyRequest() {
	return { policy: $('policy-text').value, ...since('policy-since') };
}

async function replay() {
	const q = policyRequest();
	const a = await ask('policy', 'replay', { ...q, policy: q.policy.trim() ? q.policy : 'version: 1\n' });
	if (!a) return;
	const now = (of) => a.now[of] ?? 0;
	$('policy-says').textContent = [`${a.changed} of ${a.decisions} decisions would change (${many(a.events, 'event')})`,
		`under this policy: ${now('allow')} allow, ${now('deny')} deny, ${now('person')} ask a person, ${now('model')} ask the model`,
		a.left ? `${a.left} more changes are not shown` : '', a.passed].filter(Boolean).join('; ');
	$('diff').replaceChildren(...a.changes.map((c) => {
		const card = element('section', 'card');
		card.append(element('p', 'mono', `${c.count} × ${shorten(c.container, 100)}${c.to ? ' → ' + c.to : ''}`), element('p', 'mono', shorten(c.command, 1000)),
			element('p', 'mono minus', '- ' + c.was), element('p', 'mono plus' + (c.opens ? ' opens' : ''), '+ ' + c.now), element('p', 'soft', shorten(c.why, 500)));
		return card;
	}));
	$('diff').focus();
}

async function suggest() {
	const a = await ask('policy', 'suggest', { ...policyRequest(), least: Math.max(1, Math.trunc(Number($('policy-least').value)) || 1) });
	if (!a) return;
	$('policy-says').textContent = a.passed ?? '';
	const text = element('div', 'text');
	text.append(...a.text.replace(/\n$/, '').split('\n').map((line) => element('div', line.startsWith('+') ? 'plus' : line.startsWith('-') ? 'minus' : '', shorten(line, 4000) || ' ')));
	$('diff').replaceChildren(text);
	$('diff').focus();
}

$('suggest').addEventListener('click', suggest);
$('policy-file').addEventListener('change', async (e) => {
	const file = e.target.files[0];
	if (!file) return;
	if (file.size > 1 << 20) note('The file has more than 1 MiB: a policy needs far less.', true);
	else $('policy-text').value = await file.text();
});
$('policy-text').addEventListener('keydown', (e) => {
	e.stopPropagation(); // what is typed is no key of the page
	if (e.key === 'Escape') $('suggest').focus();
	if (e.key === 'Enter' && e.ctrlKey) replay();
});

// Views and keys.

function show(view) {
	for (const v of theirs) {
		if (view) $(v).hidden = true;
		if (view) $('tab-' + v).setAttribute('aria-pressed', 'false');
	}
	for (const v of Object.keys(mine)) {
		mine[v].hidden = v !== view;
		$('tab-' + v).setAttribute('aria-pressed', String(v === view));
	}
	shown = view;
	if (!view) return;
	fillContainers();
	if (view === 'egress' && !$('egress-says').textContent) egress();
	if (view === 'search' && !last) $('search-text').focus();
	if (view === 'life' && !$('life-says').textContent) $('life-container').focus();
}

for (const v of theirs) $('tab-' + v).addEventListener('click', () => show(''));

const keys = { 4: 'search', 5: 'life', 6: 'egress', 7: 'policy' };

document.addEventListener('keydown', (e) => {
	if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || document.querySelector('dialog[open]')) return;
	if (e.key === 'Escape' && e.target.matches('input, select')) {
		e.target.blur();
		return;
	}
	if (e.target.matches('input:not([type=checkbox]), select, textarea')) return;
	if (/^[123]$/.test(e.key)) {
		show('');
	} else if (Object.hasOwn(keys, e.key)) {
		e.preventDefault();
		show(keys[e.key]);
	} else if (shown === 'search' && ['j', 'k', 'o', '/'].includes(e.key)) {
		e.preventDefault();
		if (e.key === '/') $('search-text').focus();
		else if (e.key === 'o') older();
		else step(e.key === 'j' ? 1 : -1);
	}
});
