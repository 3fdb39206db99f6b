/** A run of which one test fails, and a second one of what failed in it. */
import { withReferee } from '../referee';

export default withReferee({ testDir: '.' });
