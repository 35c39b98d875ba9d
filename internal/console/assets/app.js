// What the page is given is text that the program has made visible; this file only ever makes text of it.

const $ = (id) => document.getElementById(id);
const views = ['questions', 'containers', 'approvals'];
const longLine = 2000; // characters of a line that are shown at once

let state = { status: '', containers: [], groups: [], approvals: [] };
let questions = []; // of all groups, in their order
let selected = ''; // id of a question
let moved = false; // by itself, since what was selected has ended: the next key that answers may be meant for that
let answered = ''; // id of what was answered here last
let about = null; // {id, shown, allow, scope, adds} that a dialog is open for
let revoking = ''; // id of an approval whose button was pressed once
let heard = Date.now(); // when the program was heard last
const whole = new Set(); // digests of texts that are shown without cuts
const seen = new Set(); // digests of texts that were on the screen to their end
const opened = new Map(); // container to {text: why it is tainted, of: its taint then, at: when that was asked}

function element(name, className, text) {
	const e = document.createElement(name);
	if (className) e.className = className;
	if (text !== undefined) e.textContent = text;
	return e;
}

const shorten = (text, most) => text.length > most ? text.slice(0, most) + '…' : text;
const find = (id) => questions.find((q) => q.id === id);

function note(text, bad = false) {
	$('note').textContent = shorten(text, 1000);
	$('note').className = bad ? 'bad' : '';
}

// trouble tells that what is shown is not of now; empty: it is.
function trouble(text) {
	$('error').textContent = text;
	$('error').hidden = !text;
}

// Asking the program.

async function post(path, body) {
	let answer;
	try {
		answer = await fetch('/' + path, {
			method: 'POST',
			headers: { 'Content-Type': 'application/json', 'X-Weir-Key': sessionStorage.getItem('key') ?? '' },
			body: JSON.stringify(body),
			credentials: 'same-origin',
		});
	} catch {
		throw new Error('weir console does not answer: is it still running, and is the sensor?');
	}
	if (!answer.ok) {
		const failed = await answer.json().catch(() => ({}));
		const e = new Error(failed.error ?? `weir console answers with ${answer.status}`);
		e.status = answer.status;
		throw e;
	}
	return answer;
}

const ask = async (path, body) => (await post(path, body)).json();

async function live() {
	for (;;) {
		let told = false; // the sensor said why it cannot be asked
		try {
			const reader = (await post('live', {})).body.pipeThrough(new TextDecoderStream()).getReader();
			let rest = '';
			for (;;) {
				const { value, done } = await reader.read();
				if (done) break;
				heard = Date.now();
				const events = (rest + value).split('\n\n');
				rest = events.pop();
				for (const e of events) {
					const next = JSON.parse(e.slice('data: '.length));
					told = Boolean(next.error);
					trouble(next.error ?? '');
					if (!next.error) take(next);
				}
			}
			if (!told) trouble('weir console has stopped: what you see is not of now');
		} catch (e) {
			trouble(e.message);
			if (e.status === 401) return sessionStorage.removeItem('key');
		}
		await new Promise((done) => setTimeout(done, 1000));
	}
}

async function enter() {
	const token = location.hash.slice(1);
	if (token || !sessionStorage.getItem('key')) {
		history.replaceState(null, '', '/');
		sessionStorage.removeItem('key');
		try {
			sessionStorage.setItem('key', (await ask('enter', { token })).key);
		} catch (e) {
			trouble(e.message);
			return;
		}
	}
	live();
}

// Showing.

function take(next) {
	const before = questions;
	const at = before.findIndex((q) => q.id === selected);
	state = next;
	questions = state.groups.flat();
	if (selected && !find(selected)) {
		moved = selected !== answered;
		selected = '';
	}
	if (!selected && questions.length) {
		const stay = before.slice(0, Math.max(at, 0)).filter((q) => find(q.id)).length;
		selected = questions[Math.min(stay, questions.length - 1)].id;
	}
	if (about && find(about.id)?.shown !== about.shown) {
		about = null; // the dialog stays: what is still typed there is not for the next question
		lost(true);
	}
	draw();
	renewWhy();
}

// lost says in the dialog that there is nothing to answer any more.
function lost(is) {
	for (const e of document.querySelectorAll('.lost')) e.hidden = !is;
}

// redraw keeps the focus on what has the same id as before.
function redraw(box, children) {
	const held = document.activeElement?.id;
	box.replaceChildren(...children);
	if (held) $(held)?.focus({ preventScroll: true });
}

function draw() {
	$('status').textContent = state.status;
	$('count').textContent = questions.length || '';
	document.title = questions.length ? `(${questions.length}) Weir console` : 'Weir console';
	$('warnings').replaceChildren(...(state.warnings ?? []).map((w) => element('li', '', w)));
	for (const id of ['approve', 'deny', 'last']) $(id).disabled = state.looks;
	drawQueue();
	drawDetail();
	drawContainers();
	drawApprovals();
	for (const [view, list] of [['questions', questions], ['containers', state.containers], ['approvals', state.approvals]]) {
		$(view).querySelector('.empty').hidden = list.length > 0;
	}
}

function drawQueue() {
	const rows = [];
	for (const group of state.groups) {
		group.forEach((q, i) => {
			const row = element('li', i ? 'more' : '');
			row.id = 'q-' + q.id;
			row.setAttribute('role', 'option');
			row.setAttribute('aria-selected', String(q.id === selected));
			row.append(element('span', 'subject', shorten(q.subject, 300)));
			const of = element('span', 'of');
			of.append(element('span', '', shorten(q.container, 60)));
			if (!i && group.length > 1) of.append(element('span', '', `${group.length} of one program to one destination`));
			of.append(element('span', 'left'));
			row.append(of);
			row.addEventListener('click', () => select(q.id));
			rows.push(row);
		});
	}
	$('queue').replaceChildren(...rows);
	$('queue').hidden = !rows.length;
	const row = selected && $('q-' + selected);
	if (row) {
		$('queue').setAttribute('aria-activedescendant', row.id);
		const at = row.getBoundingClientRect(), list = $('queue').getBoundingClientRect();
		$('queue').scrollTop += Math.min(at.top - list.top, 0) || Math.max(at.bottom - list.bottom, 0);
	} else {
		$('queue').removeAttribute('aria-activedescendant');
	}
	tick();
}

function lines(text, all) {
	return text.replace(/\n$/, '').split('\n').map((line) => {
		const row = element('div', 'line');
		if (all || line.length <= longLine) {
			row.textContent = line;
			return row;
		}
		const head = line.slice(0, longLine / 2), tail = line.slice(-longLine / 4);
		row.append(head, element('span', 'cut', ` [${line.length - head.length - tail.length} more characters] `), tail);
		return row;
	});
}

function drawDetail() {
	const q = find(selected);
	$('detail').hidden = !q;
	if (!q) return;
	if ($('text').dataset.shown !== q.shown || $('text').dataset.whole !== String(whole.has(q.shown))) {
		$('text').replaceChildren(...lines(q.text, whole.has(q.shown)));
		$('text').dataset.shown = q.shown;
		$('text').dataset.whole = String(whole.has(q.shown));
		$('text').scrollTop = 0;
	}
	$('full').hidden = !cut(q);
	$('last').hidden = !q.lasting;
	look();
	tick();
}

const cut = (q) => !whole.has(q.shown) && q.text.split('\n').some((line) => line.length > longLine);

const passed = {}; // by a box's id: the text and size that it had, and how far it was on the screen

// passes says whether all of a box's text was on the screen, from its start on and without a gap.
function passes(box, text) {
	const at = box.getBoundingClientRect(), frame = box.closest('dialog')?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
	const from = box.scrollTop + Math.max(frame.top - at.top, 0), to = box.scrollTop + Math.min(box.clientHeight, frame.bottom - at.top);
	const what = [box.clientWidth, box.scrollHeight, text].join(' ');
	if (passed[box.id]?.what !== what) passed[box.id] = { what, to: 0 };
	const p = passed[box.id];
	if (from <= p.to + 2) p.to = Math.max(p.to, to);
	return box.clientHeight > 0 && p.to >= box.scrollHeight - 2;
}

// look notes which texts were on the screen as a whole.
function look() {
	if (document.hidden) return;
	if (about?.adds && !$('added').hidden && passes($('adds'), about.adds)) about.read = true;
	const q = find(selected), box = $('text');
	if (!q || $('questions').hidden) return;
	if (!cut(q) && passes(box, q.shown)) seen.add(q.shown);
	$('unread').hidden = seen.has(q.shown);
	const end = box.scrollTop + box.clientHeight >= box.scrollHeight - 2 && box.getBoundingClientRect().bottom <= innerHeight + 2;
	$('unread').textContent = cut(q) ? 'This is shortened: show all of it (f) before you approve.'
		: end ? 'A part of this was not on the screen: go back (b) and see all of it before you approve.'
		: 'There is more below: see all of it (space) before you approve.';
}

function span(ms) {
	const s = Math.max(0, Math.round(ms / 1000));
	if (s >= 3600) return `${Math.floor(s / 3600)}h${Math.floor(s % 3600 / 60)}m`;
	return s >= 60 ? `${Math.floor(s / 60)}m${s % 60}s` : `${s}s`;
}

function tick() {
	const now = Date.now();
	for (const q of questions) {
		const left = $('q-' + q.id)?.querySelector('.left');
		if (left) left.textContent = span(Date.parse(q.deadline) - now) + ' left';
	}
	if (now - heard > 40000) trouble('weir console was not heard for 40 seconds: what you see is not of now');
	const q = find(selected);
	if (q) $('times').textContent = `${q.id}: asked ${span(now - Date.parse(q.asked))} ago, ${span(Date.parse(q.deadline) - now)} left. ${q.askers}`;
}

const drawn = {}; // what the views show: what has not changed keeps its focus

function changed(what, of) {
	const now = JSON.stringify(of);
	const is = drawn[what] !== now;
	drawn[what] = now;
	return is;
}

function drawContainers() {
	if (!changed('containers', [state.containers, [...opened].map(([ref, why]) => [ref, why.text])])) return;
	redraw($('cards'), state.containers.map((c) => {
		const card = element('section', 'card');
		card.append(element('h3', '', shorten(c.name, 200)));
		card.append(element('p', 'soft', shorten([c.state, c.id, c.of, c.cgroup].filter(Boolean).join(' · '), 500)));
		const taint = element('p');
		for (const bit of c.taint) taint.append(element('span', 'taint', bit));
		if (!c.taint.length) taint.append(element('span', 'soft', 'no taint'));
		if (c.since) taint.append(` since ${c.since}, by ${shorten(c.by, 100)}`);
		card.append(taint);
		if (c.questions) card.append(element('p', '', `${c.questions} ${c.questions === 1 ? 'question waits' : 'questions wait'}`));
		if (c.grants.length) {
			const list = element('ul');
			list.append(...c.grants.map((g) => element('li', '', shorten(g, 1000))));
			card.append(list);
		}
		const why = element('button', '', opened.has(c.ref) ? 'hide why' : 'why');
		why.id = 'why-' + c.ref;
		why.setAttribute('aria-expanded', String(opened.has(c.ref)));
		why.setAttribute('aria-label', `${why.textContent}: ${shorten(c.name, 100)}`);
		why.addEventListener('click', () => toggleWhy(c.ref));
		card.append(why);
		if (opened.has(c.ref)) {
			const text = element('div', 'text');
			text.tabIndex = 0;
			text.setAttribute('role', 'region');
			text.setAttribute('aria-label', 'why it is tainted');
			text.append(...lines(opened.get(c.ref).text, false));
			card.append(text);
		}
		return card;
	}));
}

async function toggleWhy(ref) {
	if (opened.has(ref)) {
		opened.delete(ref);
	} else {
		opened.set(ref, { text: '' });
		await askWhy(ref);
	}
	drawContainers();
}

function taintOf(ref) {
	const c = state.containers.find((c) => c.ref === ref);
	return c && JSON.stringify([c.taint, c.since, c.by]);
}

// askWhy asks why a container is tainted whose answer is opened.
async function askWhy(ref) {
	const why = opened.get(ref);
	Object.assign(why, { of: taintOf(ref), at: Date.now() });
	try {
		why.text = (await ask('why', { id: ref })).text;
	} catch (e) {
		if (!why.text) opened.delete(ref);
		note(e.message, true);
	}
}

let renewing = false;

// renewWhy asks again why containers are tainted that have changed since, or that were asked about half a minute ago.
async function renewWhy() {
	if (renewing || $('containers').hidden) return;
	renewing = true;
	try {
		for (const [ref, why] of [...opened]) {
			if (opened.get(ref) !== why) continue; // it was closed while another was asked about
			if (!taintOf(ref)) opened.delete(ref);
			else if (why.of !== taintOf(ref) || Date.now() - why.at > 30000) await askWhy(ref);
		}
	} finally {
		renewing = false;
	}
	drawContainers();
}

function drawApprovals() {
	if (!changed('approvals', [state.approvals, revoking, state.looks])) return;
	redraw($('standing'), state.approvals.map((a) => {
		const card = element('section', 'card');
		card.append(element('p', 'mono', shorten(a.covers, 4000)));
		const end = a.until ? `ends ${new Date(a.until).toLocaleTimeString()}` : 'until the container ends';
		card.append(element('p', 'soft', `${a.id}, given by ${shorten(a.by, 100)}, used ${a.uses} times, ${a.left} left, ${end}`));
		const button = element('button', '', revoking === a.id ? 'revoke it: press again' : 'revoke');
		button.id = 'revoke-' + a.id;
		button.disabled = state.looks;
		button.setAttribute('aria-label', `${button.textContent}: ${a.id}`);
		button.addEventListener('click', async () => {
			const again = revoking === a.id;
			revoking = again ? '' : a.id;
			drawApprovals();
			if (again) try {
				note((await ask('revoke', { id: a.id })).note);
			} catch (e) {
				note(e.message, true);
			}
		});
		card.append(button);
		return card;
	}));
}

function view(name) {
	for (const v of views) {
		$(v).hidden = v !== name;
		$('tab-' + v).setAttribute('aria-pressed', String(v === name));
	}
	renewWhy();
	look();
}

function select(id) {
	moved = false;
	selected = id;
	drawQueue();
	drawDetail();
}

function move(by) {
	const at = questions.findIndex((q) => q.id === selected);
	if (at >= 0) select(questions[Math.min(Math.max(at + by, 0), questions.length - 1)].id);
}

// Answering.

// begin opens a dialog for what is selected. What was not shown in full is not approved.
function begin(allow, lasting) {
	const q = find(selected);
	if (!q) return note('No question is selected.');
	if (state.looks) return note('You may look here, and not answer.');
	if (!$('error').hidden) return note('The sensor cannot be asked now.');
	if (moved) {
		moved = false;
		return note('Another question is selected now, since the one before has ended: look, and press the key again.');
	}
	if (allow && !seen.has(q.shown)) return note('There is more of this question: see all of it first.');
	if (lasting && !q.lasting) return note('This question cannot be approved for longer here.');
	about = { id: q.id, shown: q.shown, allow, scope: 0, adds: '' };
	if (lasting) beginLasting(q);
	else beginConfirm(q);
}

function beginConfirm(q) {
	$('confirm-title').textContent = about.allow ? 'Approve this once?' : 'Deny this?';
	$('confirm-about').textContent = shorten(q.subject, 4000);
	$('yes-word').textContent = about.allow ? 'approve' : 'deny';
	$('reason').value = '';
	$('scopes').replaceChildren(...(about.allow ? q.scopes : []).map((text, i) => {
		const row = element('li', '', shorten(text, 1000) + (i ? ', and everything it starts' : ', the default'));
		row.addEventListener('click', () => scope(i + 1));
		return row;
	}));
	scope(about.allow && q.scopes.length ? 1 : 0);
	lost(false);
	$('confirm').showModal();
	$('yes').focus();
}

function scope(n) {
	if (!about) return;
	about.scope = n;
	[...$('scopes').children].forEach((row, i) => row.setAttribute('aria-current', String(i + 1 === n)));
}

function beginLasting(q) {
	const who = [];
	const choice = (value, text) => {
		const option = element('option', '', shorten(text, 300));
		option.value = value;
		who.push(option);
	};
	(q.scopes.length ? q.scopes : ['the process that asked']).forEach((text, i) => {
		if (q.narrowest && i + 1 >= q.narrowest) choice(`process ${i + 1}`, text + ' and everything it starts');
	});
	choice('program 0', 'every process of its program in the container');
	choice('container 0', 'every process of the container');
	$('who').replaceChildren(...who);
	$('fields').reset();
	hideAdded();
	lost(false);
	$('lasting').showModal();
	$('for').focus();
}

function hideAdded() {
	$('added').hidden = true;
	$('lasting-error').hidden = true;
	if (about) about.adds = '', about.read = false;
}

function lastingRequest() {
	const [who, scope] = $('who').value.split(' ');
	return {
		id: about.id, shown: about.shown, allow: true, why: $('lasting-reason').value, scope: Number(scope), for: $('for').value.trim(), who,
		bytes: $('bytes').value.trim(), keeps: $('keeps').checked,
	};
}

async function preview() {
	hideAdded();
	const mine = about;
	if (!mine) return;
	const body = lastingRequest();
	if (!body.for) return lastingTrouble('give a time, or session');
	try {
		const { text } = await ask('preview', body);
		if (about !== mine || JSON.stringify(body) !== JSON.stringify(lastingRequest())) return; // it is about something else by now
		about.adds = text;
		about.body = body;
		$('adds').replaceChildren(...lines(text, true));
		$('added').hidden = false;
		$('adds').scrollTop = 0;
		$('added').focus();
		look();
	} catch (e) {
		if (about === mine) lastingTrouble(e.message);
	}
}

function lastingTrouble(text) {
	$('lasting-error').textContent = text;
	$('lasting-error').hidden = false;
}

function close() {
	about = null;
	for (const id of ['confirm', 'lasting']) if ($(id).open) $(id).close();
	$('queue').focus();
}

async function send(body) {
	close();
	answered = body.id;
	try {
		note((await ask('answer', body)).note);
	} catch (e) {
		answered = '';
		note(e.message, true);
	}
}

function confirmed() {
	if (about) send({ id: about.id, shown: about.shown, allow: about.allow, why: $('reason').value, scope: about.scope > 1 ? about.scope : 0 });
}

function lastingConfirmed() {
	if (about?.adds && !about.read) return lastingTrouble('There is more of what it adds: see all of it first (space).');
	if (about?.adds) send({ ...about.body, adds: about.adds });
}

// Keys and buttons.

// page turns the pages of a box, after it is on the screen as a whole.
function page(by, box = $('text')) {
	const place = () => box.getBoundingClientRect().top;
	const before = place();
	box.scrollIntoView({ block: 'nearest', behavior: 'instant' });
	if (place() === before) box.scrollBy({ top: by * box.clientHeight * 0.9, behavior: 'instant' });
	look();
}

function full() {
	const q = find(selected);
	if (q) whole.add(q.shown);
	drawDetail();
}

const keys = {
	1: () => view('questions'), 2: () => view('containers'), 3: () => view('approvals'),
	j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
	' ': () => page(1), b: () => page(-1), f: full,
	a: () => begin(true, false), d: () => begin(false, false), l: () => begin(true, true),
};

document.addEventListener('keydown', (e) => {
	if (e.repeat && e.key === 'Enter') e.preventDefault(); // a key that is held confirms nothing
	if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.repeat && !'jkb '.includes(e.key) && !e.key.startsWith('Arrow')) return;
	const typing = e.target.matches('input:not([type=checkbox]), select');
	if ($('confirm').open) {
		if (typing) {
			if (e.key === 'Enter') { e.preventDefault(); confirmed(); }
		} else if (e.key === 'y') {
			confirmed();
		} else if (e.key === 'r') {
			e.preventDefault();
			$('reason').focus();
		} else if (/^[1-9]$/.test(e.key) && Number(e.key) <= $('scopes').children.length) {
			scope(Number(e.key));
		}
		return;
	}
	if ($('lasting').open) {
		if (typing || $('added').hidden) return;
		if (e.key === 'y') {
			lastingConfirmed();
		} else if (e.key === 'b' || e.key === ' ' && !e.target.matches('button, input')) {
			e.preventDefault();
			page(e.key === 'b' ? -1 : 1, $('adds'));
		}
		return;
	}
	if (typing || e.key === ' ' && e.target.matches('button')) return;
	if ($('questions').hidden && !/^[123]$/.test(e.key)) return; // nothing is answered that is not on the screen
	if (Object.hasOwn(keys, e.key)) {
		e.preventDefault();
		keys[e.key]();
	}
});

for (const v of views) $('tab-' + v).addEventListener('click', () => view(v));
for (const b of document.querySelectorAll('.cancel')) b.addEventListener('click', close);
for (const id of ['confirm', 'lasting']) {
	$(id).addEventListener('click', (e) => { // the second click of two was meant for what the first one was on
		if (e.detail > 1 && e.target.closest('button')) {
			e.preventDefault();
			e.stopPropagation();
		}
	}, true);
	$(id).addEventListener('cancel', () => { about = null; });
	$(id).addEventListener('close', () => {
		if ($('confirm').open || $('lasting').open) return;
		about = null;
		$('queue').focus();
	});
}
$('approve').addEventListener('click', () => begin(true, false));
$('deny').addEventListener('click', () => begin(false, false));
$('last').addEventListener('click', () => begin(true, true));
$('full').addEventListener('click', full);
$('yes').addEventListener('click', confirmed);
$('lasting-yes').addEventListener('click', lastingConfirmed);
$('fields').addEventListener('submit', (e) => { e.preventDefault(); preview(); });
$('fields').addEventListener('input', hideAdded);
for (const e of [$('text'), $('adds'), $('lasting'), window]) e.addEventListener('scroll', look);
document.addEventListener('visibilitychange', look);
window.addEventListener('resize', look);
setInterval(tick, 1000);
enter();
export { element, lines, note, shorten, state }; // for history.js
