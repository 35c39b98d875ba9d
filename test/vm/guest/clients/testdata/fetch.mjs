try {
	const answer = await fetch(process.argv[2]);
	console.log(await answer.text());
} catch (e) {
	console.error(e.cause ?? e);
	process.exit(1);
}
