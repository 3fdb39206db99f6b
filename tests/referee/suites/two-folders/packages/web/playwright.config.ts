/** The suite of one package of a repository. */
import { withReferee } from '../../../referee';

export default withReferee({ testDir: 'tests', projects: [{ name: 'web' }] });
